"""The kernels of an execution provider by ONNX operator, and what is known to go wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.targets.directml import level_key
from dmlc.targets.rows import Rows
from dmlc.targets.target import load_data

#: The domains whose operators the tables cover in full: what is not listed has no kernel.
COVERED_DOMAINS = frozenset(("", "ai.onnx.ml", "com.microsoft", "ai.onnx.preview.training", "ai.onnx.training"))


class Kernel(Struct, frozen=True):
    """A kernel: the types by type parameter; ``constant`` are the inputs that must be initializers for a fused graph.

    ``int64`` are the type parameters that are i64 too where a session has the provider's option enableInt64, which
    computes the low 32 bits. ``graph_inputs`` is the number of inputs that a node in a graph has, ``query`` the
    provider's own further check.
    ``directml`` are its DirectML operators where they are other than the row's.
    ``release`` is the first onnxruntime with the kernel, ``types_release`` with these types. ``not_onnx`` are those of
    its types that ONNX does not have for the operator: no model has such a node.
    """

    since: int
    types: Mapping[str, frozenset[str]]
    constant: frozenset[int] = frozenset()
    graph_inputs: int | None = None
    query: str = ""
    directml: tuple[str, ...] = ()
    release: str = ""
    types_release: str = ""
    not_onnx: Mapping[str, frozenset[str]] = field(default_factory=dict)
    int64: frozenset[str] = frozenset()

    def with_int64(self) -> Kernel:
        """The kernel in a session with the provider's option for i64."""
        types = {name: taken | {"i64"} if name in self.int64 else taken for name, taken in self.types.items()}
        return replace(self, types=types) if self.int64 else self


class EarlierForm(Struct, frozen=True):
    """The DirectML operators and tensors of a row in releases of onnxruntime up to ``until``."""

    until: str
    directml: tuple[str, ...]
    tensors: Mapping[str, str] | None


class ProviderRow(Struct, frozen=True):
    """An ONNX operator: ``opsets`` are the ranges where a kernel of it matches, ``directml`` what it becomes.

    ``tensors`` says which tensor of that DirectML operator is which operand (``i0``), result (``o0``), or type.
    ``inputs`` and ``outputs`` are type parameters or types. ``graph`` is false where the node never joins a fused
    graph, ``host`` true where the kernel is the CPU's, registered for the provider. ``earlier`` are the forms of older
    releases, oldest first. ``unread`` are operands whose elements are not read: only their type or shape counts.
    ``host_operands`` and ``host_results`` lie on the CPU wherever the node runs.
    """

    domain: str
    op: str
    opsets: tuple[tuple[int, int], ...]
    kernels: tuple[Kernel, ...]
    directml: tuple[str, ...] = ()
    tensors: Mapping[str, str] | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    graph: bool = True
    host: bool = False
    unread: frozenset[int] = frozenset()
    host_operands: frozenset[int] = frozenset()
    host_results: frozenset[int] = frozenset()
    earlier: tuple[EarlierForm, ...] = ()

    def in_release(self, release: str | None) -> ProviderRow:
        """The row with the DirectML operators of a release; None is the newest one."""
        if release is None:
            return self
        form = next((e for e in self.earlier if level_key(release) <= level_key(e.until)), None)
        return self if form is None else replace(self, directml=form.directml, tensors=form.tensors)

    def of_kernel(self, kernel: Kernel) -> ProviderRow:
        """The row with the DirectML operators of one of its kernels."""
        return replace(self, directml=kernel.directml, tensors=None) if kernel.directml else self

    def usable(self, opset: int) -> bool:
        return any(first <= opset <= last for first, last in self.opsets)

    def kernel(self, opset: int, release: str | None = None) -> Kernel | None:
        """The kernel that takes a node of a model of this opset; None where none does, or not yet in the release."""
        if self.domain == "" and not self.usable(opset):
            return None
        version = opset if self.domain == "" else 1
        found = max((k for k in self.kernels if k.since <= version), key=lambda k: k.since, default=None)
        if found is None or (release and found.release and level_key(found.release) > level_key(release)):
            return None
        return found


class Failure(Struct, frozen=True):
    """Something known to go wrong, and when: all that is given must hold. ``effect`` is fails, wrong, imprecise,
    advice (for some data or sizes) or cpu.

    The operators are of ``domain``; ``*`` stands for those of every domain. ``attributes`` have these values,
    ``attributes_not`` are given and have others, ``contains`` hold a text; ``negative`` names the attribute or the
    constant operand (``i1``) that holds a number below 0. One of the operands in ``missing`` is not given. One of the
    operands in ``given``, or of the results in ``results_given``, is there. The shapes of the operands in
    ``shapes_differ`` are known and not the same. The type parameters in ``mixed`` stand for several types. The first
    operand has fewer axes than ``ranks_under``. More than ``resized_over`` axes have another size than 1 before or
    after. An equation has more than ``letters_over`` letters. Operand ``constant_scalar`` is a constant of one element.
    ``when`` names a further condition, a function of the placement report. The releases of onnxruntime from
    ``first_release`` to ``last_release`` have it, both included; empty: no bound. Sessions with the options ``unless``
    do not have it.
    """

    id: str
    operators: frozenset[str]
    effect: str
    what: str
    repair: str
    source: str
    domain: str = ""
    since: frozenset[int] = frozenset()
    types: Mapping[str, frozenset[str]] | None = None
    ranks_over: int | None = None
    empty: bool = False
    results_over: int | None = None
    attributes: Mapping[str, object] | None = None
    attributes_not: Mapping[str, object] | None = None
    negative: str = ""
    operands_over: int | None = None
    contains: Mapping[str, str] | None = None
    missing: frozenset[int] = frozenset()
    given: frozenset[int] = frozenset()
    results_given: frozenset[int] = frozenset()
    shapes_differ: tuple[int, ...] = ()
    mixed: frozenset[str] = frozenset()
    ranks_under: int | None = None
    resized_over: int | None = None
    letters_over: int | None = None
    constant_scalar: int | None = None
    when: str = ""
    first_release: str = ""
    last_release: str = ""
    unless: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_of_types(self) -> bool:
        """True if nothing but the types and the kernel decides whether a node has it."""
        others = (self.ranks_over, self.ranks_under, self.results_over, self.operands_over, self.resized_over)
        scalars = (self.letters_over, self.constant_scalar, self.attributes, self.attributes_not, self.contains)
        given = (self.missing, self.given, self.results_given, self.shapes_differ, self.mixed, self.when, self.negative)
        is_given = any(given) or self.empty or any(each is not None for each in (*others, *scalars))
        return self.types is not None and not is_given

    def in_release(self, release: str | None) -> bool:
        """True if a release has it; None is the newest one."""
        if release is None:
            return not self.last_release
        key = level_key(release)
        return (not self.first_release or level_key(self.first_release) <= key) and (
            not self.last_release or key <= level_key(self.last_release)
        )


class RuntimeRewrite(Struct, frozen=True):
    """A pass of ONNX Runtime that replaces nodes by one node ``makes``, in models of these opsets.

    It does so for the providers of ``devices``. ``patterns`` are given only where the new node runs elsewhere than the
    replaced ones, gives other numbers or has fewer dispatches: operators with their operands,
    numbers, and names of values. ``when`` names a condition on these.
    """

    name: str
    level: int
    domain: str
    makes: str
    opsets: tuple[int, int]
    patterns: tuple[str, ...]
    source: str
    when: str = ""
    devices: tuple[str, ...] = ("DirectML",)


class SessionFacts(Struct, frozen=True):
    """A session of ONNX Runtime on a provider: its name there, and the options that every session has.

    ``int64_options`` ask for more kernels of i64, which compute the low 32 bits, ``plain_layout`` for ONNX's layout
    where the provider prefers another; empty where there are none.
    """

    provider: str
    provider_options: Mapping[str, str]
    session_options: Mapping[str, object]
    int64_options: Mapping[str, str] = field(default_factory=dict)
    plain_layout: Mapping[str, str] = field(default_factory=dict)


class Provider(Struct, frozen=True):
    """The table of one execution provider. ``cite`` is its source in a few words, ``device`` what a user calls it.

    Where it ``fuses``, it compiles neighbours together; ``dispatches`` names the table of what a node dispatches.
    """

    device: str
    session: SessionFacts
    fuses: bool
    dispatches: str
    source: str
    cite: str
    date: str
    known_opsets: tuple[int, int]
    rows: Mapping[tuple[str, str], ProviderRow]
    failures: tuple[Failure, ...]
    rewrites: tuple[RuntimeRewrite, ...] = ()
    _of: dict[tuple[str, str, str | None], tuple[Failure, ...]] = field(default_factory=dict)
    _bounded: dict[tuple[str, str], tuple[Failure, ...]] = field(default_factory=dict)

    def failures_of(self, op: str, release: str | None = None, domain: str = "") -> tuple[Failure, ...]:
        """The known failures of an operator, or of any, in a release (None: the newest); looked for once."""
        key = (domain, op, release)
        if key not in self._of:
            found = [f for f in self.failures if "*" in f.operators or (op in f.operators and domain == f.domain)]
            self._of[key] = tuple(f for f in found if f.in_release(release))
        return self._of[key]

    def failures_of_some_releases(self, op: str, domain: str = "") -> tuple[Failure, ...]:
        """The known failures of an operator that not every release has."""
        key = (domain, op)
        if key not in self._bounded:
            found = [f for f in self.failures if f.first_release or f.last_release]
            self._bounded[key] = tuple(
                f for f in found if "*" in f.operators or (op in f.operators and domain == f.domain)
            )
        return self._bounded[key]

    def row(self, domain: str, op: str) -> ProviderRow | None:
        return self.rows.get((domain, op))


def parse_provider(data: dict[str, Any], optimizer: Mapping[str, Any] | None = None) -> Provider:
    """The table of a document, with the passes that ``optimizer`` lists; its rows are read when they are asked for."""
    raw = {(row.get("domain", ""), row["op"]): row for row in data["rows"]}
    rows = Rows(raw, lambda _, row: _row(row))
    failures = tuple(_failure(each) for each in data["failures"])
    rewrites = tuple(_rewrite(each) for each in (optimizer or {}).get("rewrites", ()))
    first, last = data["known_opsets"]
    return Provider(
        device=data["device"],
        session=SessionFacts(**data["session"]),
        fuses=data["fuses"],
        dispatches=data["dispatches"],
        source=data["source"],
        cite=data["cite"],
        date=data["date"],
        known_opsets=(first, last),
        rows=rows,
        failures=failures,
        rewrites=tuple([rewrite for rewrite in rewrites if data["device"] in rewrite.devices]),
    )


def _rewrite(raw: dict[str, Any]) -> RuntimeRewrite:
    first, last = raw["opsets"]
    return RuntimeRewrite(
        name=raw["pass"],
        level=raw["level"],
        domain=raw.get("domain", ""),
        makes=raw["makes"],
        opsets=(first, last),
        patterns=tuple(raw.get("patterns", ())),
        source=raw["source"],
        when=raw.get("when", ""),
        devices=tuple(raw.get("devices", ("DirectML",))),
    )


def _row(raw: dict[str, Any]) -> ProviderRow:
    return ProviderRow(
        domain=raw.get("domain", ""),
        op=raw["op"],
        opsets=tuple((first, last) for first, last in raw.get("opsets", ())),
        kernels=tuple(_kernel(kernel) for kernel in raw["kernels"]),
        directml=tuple(raw.get("directml", ())),
        tensors=raw.get("tensors"),
        inputs=tuple(raw.get("inputs", ())),
        outputs=tuple(raw.get("outputs", ())),
        graph=raw.get("graph", True),
        host=raw.get("host", False),
        unread=frozenset(raw.get("unread", ())),
        host_operands=frozenset(raw.get("host_operands", ())),
        host_results=frozenset(raw.get("host_results", ())),
        earlier=tuple(
            EarlierForm(form["until"], tuple(form["directml"]), form.get("tensors")) for form in raw.get("earlier", ())
        ),
    )


def _kernel(raw: dict[str, Any]) -> Kernel:
    return Kernel(
        since=raw["since"],
        types={name: frozenset(text.split()) for name, text in raw["types"].items()},
        constant=frozenset(raw.get("constant", ())),
        graph_inputs=raw.get("graph_inputs"),
        query=raw.get("query", ""),
        directml=tuple(raw.get("directml", ())),
        release=raw.get("release", ""),
        types_release=raw.get("types_release", ""),
        not_onnx={name: frozenset(text.split()) for name, text in raw.get("not_onnx", {}).items()},
        int64=frozenset(raw.get("int64", ())),
    )


def _failure(raw: dict[str, Any]) -> Failure:
    types = raw.get("types")
    return Failure(
        id=raw["id"],
        operators=frozenset(raw["operators"].split()),
        effect=raw["effect"],
        what=raw["what"],
        repair=raw["repair"],
        source=raw["source"],
        domain=raw.get("domain", ""),
        since=frozenset(raw.get("since", ())),
        types=None if types is None else {name: frozenset(text.split()) for name, text in types.items()},
        ranks_over=raw.get("ranks_over"),
        empty=raw.get("empty", False),
        results_over=raw.get("results_over"),
        attributes=raw.get("attributes"),
        attributes_not=raw.get("attributes_not"),
        negative=raw.get("negative", ""),
        operands_over=raw.get("operands_over"),
        contains=raw.get("contains"),
        missing=frozenset(raw.get("missing", ())),
        given=frozenset(raw.get("given", ())),
        results_given=frozenset(raw.get("results_given", ())),
        shapes_differ=tuple(raw.get("shapes_differ", ())),
        mixed=frozenset(raw.get("mixed", ())),
        ranks_under=raw.get("ranks_under"),
        resized_over=raw.get("resized_over"),
        letters_over=raw.get("letters_over"),
        constant_scalar=raw.get("constant_scalar"),
        when=raw.get("when", ""),
        first_release=raw.get("from", ""),
        last_release=raw.get("until", ""),
        unless=raw.get("unless", {}),
    )


@lru_cache(maxsize=4)
def provider(name: str) -> Provider:
    """The table of that name; few of its rows are asked for."""
    return parse_provider(load_data(name), load_data("ort_optimizer"))
