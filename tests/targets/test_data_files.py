"""The data files of ``dmlc/targets/data``: dmlc reads them unchecked, so these classes state what each may hold."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import Meta, Struct
from onnx import TensorProto

from dmlc.ir import DTYPE_BY_NAME
from dmlc.targets import target
from dmlc.targets.directml import feature_levels, level_key
from dmlc.targets.kernel_rows import INSERTED
from tests.rows import each_row

DATA = Path(target.__file__).with_name("data")


def words(*names: str) -> Meta:
    """Names with spaces between them."""
    name = f"({'|'.join(names)})"
    return Meta(pattern=f"^({name}( {name})*)?$")


Name: TypeAlias = Annotated[str, Meta(pattern=r"\S")]
Level: TypeAlias = Annotated[str, Meta(pattern=r"^[0-9]{1,4}(\.[0-9]{1,8})*$")]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=10_000)]
Number: TypeAlias = Annotated[float, Meta(ge=0, lt=1e18)]
Above: TypeAlias = Annotated[float, Meta(gt=0, lt=1e18)]
Range: TypeAlias = tuple[Count, Count]
#: An attribute of a node.
Plain: TypeAlias = str | float | bool | list[str | float | bool]
_TYPES = [f"{kind}{bits}" for kind in "iu" for bits in (4, 8, 16, 32, 64)]
Types: TypeAlias = Annotated[str, words("f16", "f32", "f64", "bf16", "bool", "string", r"float8\w*", *_TYPES)]
CpuTypes: TypeAlias = Annotated[str, words(*DTYPE_BY_NAME, INSERTED.replace("(", r"\(").replace(")", r"\)"))]
Elements: TypeAlias = Annotated[str, words(*[name.lower() for name, _ in TensorProto.DataType.items()])]
Rates: TypeAlias = tuple[Number, Number, Number, Number]


class Row(Struct, forbid_unknown_fields=True):
    """A part of a file; what it does not name is a mistake."""


class Document(Struct):
    """A file; it may say more, in words."""

    schema: Literal[1]


class Target(Row):
    schema: Literal[1]
    name: Name
    summary: str
    opset: Count
    min_opset: Count
    max_opset: Count
    ir_version: Count
    source: str
    date: str
    like: Name | None = None
    order: Count = 0
    kernels: Name | None = None
    provider: Name | None = None
    costs: Name | None = None
    release: Level | None = None
    feature_level: Level | None = None
    max_rank: Count | None = None
    code: Literal["onnx", "numpy"] = "onnx"
    installed_kernels: bool = False
    own_schemas: bool = False
    native_f16: bool = False
    portable: bool = False
    wraps_integers: bool = False
    runs_on_cpu: bool = True


class Costs(Document):
    source: Name
    date: Name
    kernels: dict[str, dict[str, Rates]]


class CpuOperators(Document):
    source: Name
    newest_opset: Count
    operators: dict[Name, Annotated[list[tuple[Count, Count | None, dict[str, Elements]]], Meta(min_length=1)]]


class Kernels(Document):
    source: Name
    operators: dict[Name, Annotated[list[tuple[Count, Count, dict[str, CpuTypes]]], Meta(min_length=1)]]


class WrongKernel(Row):
    operators: list[Name]
    types: Types
    what: Name
    instead: Name
    since: Level | None
    until: Level | None
    seen: list[Name]
    source: Name


class WrongKernels(Document):
    wrong: list[WrongKernel]


class DispatchCost(Row):
    dispatch_us: Above
    bytes_per_us: Above
    source: Name


class Dispatches(Row):
    count: Count
    source: Name
    operators: list[Name] = []
    per_row: Count = 0
    apart: Count = 0
    before: Count = 0
    unprepared: Count = 0
    operands: dict[str, Count] = {}


class DispatchTable(Document):
    cost: DispatchCost
    default: Dispatches
    rows: list[Dispatches]


class FeatureLevel(Struct):
    level: Level


class FeatureLevels(Document):
    levels: list[FeatureLevel]
    least: Level


Tensors: TypeAlias = Annotated[dict[Name, tuple[Annotated[int, Meta(ge=1)], Count, Types]], Meta(min_length=1)]


class DmlOperator(Row):
    operator: Name
    introduced: Level
    source: Name
    levels: Annotated[list[tuple[Level, Tensors]], Meta(min_length=1)]
    functions: str = ""
    optional: str = ""
    measured: str = ""

    @property
    def names(self) -> list[str]:
        return [f"{self.operator}.{name}" for name in self.functions.split()] or [self.operator]


class DmlOperators(Document):
    rows: list[DmlOperator]
    without_limits: dict[str, Name] = {}


class EarlierForm(Row):
    until: Level
    directml: list[str]
    source: Name
    tensors: dict[str, str] | None = None


class Kernel(Row):
    since: Count
    types: dict[str, Types]
    not_onnx: dict[str, Types] = {}
    constant: list[Count] = []
    graph_inputs: Count | None = None
    query: str = ""
    directml: list[Name] = []
    int64: list[Name] = []
    release: Level | Literal[""] = ""
    types_release: Level | Literal[""] = ""


class ProviderRow(Row):
    op: Name
    inputs: list[str]
    outputs: list[str]
    kernels: Annotated[list[Kernel], Meta(min_length=1)]
    domain: str = ""
    opsets: list[Range] = []
    directml: list[str] = []
    tensors: dict[str, str] | None = None
    unread: list[Count] = []
    host_operands: list[Count] = []
    host_results: list[Count] = []
    graph: bool = True
    host: bool = False
    earlier: list[EarlierForm] = []


class Failure(Row):
    id: Name
    operators: Name
    effect: Literal["fails", "wrong", "imprecise", "advice", "cpu"]
    what: Name
    repair: Name
    source: Name
    domain: str = ""
    since: list[Count] = []
    types: dict[str, Types] | None = None
    contains: dict[str, str] | None = None
    ranks_over: Count | None = None
    ranks_under: Count | None = None
    results_over: Count | None = None
    operands_over: Count | None = None
    resized_over: Count | None = None
    letters_over: Count | None = None
    constant_scalar: Count | None = None
    empty: bool = False
    attributes: dict[str, Plain] | None = None
    attributes_not: dict[str, Plain] | None = None
    negative: str = ""
    from_: Level = msgspec.field(default="0", name="from")
    until: Level = "0"
    missing: list[Count] = []
    given: list[Count] = []
    results_given: list[Count] = []
    shapes_differ: list[Count] = []
    mixed: list[Name] = []
    when: Name = "never"
    unless: dict[str, str] = {}


class Session(Row):
    provider: Name
    provider_options: dict[str, str]
    session_options: dict[str, Plain]
    int64_options: dict[str, str] = {}
    plain_layout: dict[str, str] = {}


class Provider(Document):
    source: str
    cite: str
    date: str
    device: str
    dispatches: str
    known_opsets: Range
    fuses: bool
    session: Session
    rows: list[ProviderRow]
    failures: list[Failure]


class Transformer(Row):
    pass_: Name = msgspec.field(name="pass")
    level: Count
    providers: Name
    takes: Name
    makes: Name
    source: Name
    verdict: Literal["right", "rounding", "wrong", "fails"]
    from_: Name = msgspec.field(default="0", name="from")
    until: Name = "0"
    when: Name | None = None
    kept_apart: bool = False


class Rewrite(Row):
    pass_: Name = msgspec.field(name="pass")
    level: Count
    makes: Name
    opsets: Range
    source: Name
    domain: str = ""
    patterns: list[Name] = []
    devices: list[Name] = []
    when: Name | None = None


class Optimizer(Document):
    transformers: list[Transformer]
    rewrites: list[Rewrite]


KINDS: dict[str, type[Struct]] = {
    "cost_ort_cpu": Costs,
    "cpu_operators": CpuOperators,
    "directml_operators": DmlOperators,
    "dispatch": DispatchTable,
    "dml_ep": Provider,
    "dxdispatch_operators": DmlOperators,
    "feature_levels": FeatureLevels,
    "ort_cpu": Kernels,
    "ort_cpu_wrong": WrongKernels,
    "ort_optimizer": Optimizer,
    "webgpu_dispatch": DispatchTable,
    "webgpu_ep": Provider,
}


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs), [name for name, _ in pairs]
    return dict(pairs)


def read(name: str) -> dict[str, Any]:
    """The document, in which each name is there once."""
    document: dict[str, Any] = json.loads((DATA / f"{name}.json").read_text("utf-8"), object_pairs_hook=once)
    return document


def are_unique(names: Iterator[Any]) -> bool:
    found = list(names)
    return len(found) == len(set(found))


def contradictions(file: Any) -> Iterator[str]:
    """Yield the contradictions between fields of one file."""
    if isinstance(file, DispatchTable) and not are_unique(op for row in file.rows for op in row.operators):
        yield "an operator has two rows"
    if isinstance(file, FeatureLevels):
        levels = [row.level for row in file.levels]
        if levels != sorted(set(levels), key=level_key) or file.least not in levels:
            yield "levels are in order, and the least is one of them"
    if isinstance(file, Costs):
        rows = [(name, dtype) for name, kinds in file.kernels.items() for key in kinds for dtype in key.split()]
        known = {*DTYPE_BY_NAME, "any"}
        if ("others", "any") not in rows or not are_unique(iter(rows)) or not {dtype for _, dtype in rows} <= known:
            yield "others have a row for any, and a dtype has one row"
    if isinstance(file, DmlOperators):
        names = [name for row in file.rows for name in row.names]
        if not are_unique(iter(names)) or not file.without_limits.keys().isdisjoint(names):
            yield "an operator has two rows"
        for row in file.rows:
            levels = [level for level, _ in row.levels]
            if levels != sorted(levels, key=level_key, reverse=True) or not {row.introduced, *levels} <= {
                *feature_levels()
            }:
                yield f"{row.operator}: feature levels are newest first"
            if any(least > most for _, tensors in row.levels for least, most, _ in tensors.values()):
                yield f"{row.operator}: a range of ranks begins with the least"
    if isinstance(file, Provider):
        if not are_unique((row.domain, row.op) for row in file.rows):
            yield "an operator has two rows"
        for each in file.rows:
            keys = [level_key(form.until) for form in each.earlier]
            if keys != sorted(set(keys)) or any(first > last for first, last in each.opsets):
                yield f"{each.op}: opsets and earlier forms are oldest first"
    if isinstance(file, Optimizer):
        passes = {row.pass_ for row in file.transformers}
        yield from (r.pass_ for r in file.rewrites if passes.isdisjoint((r.pass_, f"{r.pass_}L{r.level}")))
        yield from (r.pass_ for r in file.transformers if r.verdict in ("wrong", "fails") and r.when is None)


def test_every_file_has_a_class() -> None:
    assert {path.stem for path in DATA.glob("*.json")} == KINDS.keys()


@each_row("name", sorted(KINDS))
def test_file_holds_what_its_class_states(name: str) -> None:
    assert list(contradictions(msgspec.convert(read(name), KINDS[name]))) == []


def test_targets_hold_what_their_class_states() -> None:
    found = {data["name"]: data for data in map(read, (f"targets/{path.stem}" for path in DATA.glob("targets/*.json")))}
    for data in found.values():
        made = msgspec.convert({**(found[data["like"]] if "like" in data else {}), **data}, Target)
        assert made.min_opset <= made.opset <= made.max_opset
    assert set(target.TargetFacts.__struct_fields__) == set(Target.__struct_fields__) - {"schema", "like", "order"}


@each_row(
    ("name", "path", "value"),
    [
        ("cost_ort_cpu", ("kernels", "Add", "any"), [1, 2, 3, -4]),
        ("cost_ort_cpu", ("kernels", "Add", "f33"), [1, 2, 3, 4]),
        ("cpu_operators", ("operators", "Abs", 0, 2, "T"), "floot"),
        ("directml_operators", ("rows", 0, "levels", 0, 1, "InputTensor", 2), "f32 f33"),
        ("directml_operators", ("rows", 0, "introduced"), "9.9"),
        ("directml_operators", ("rows", 0, "levels", 0, 1, "InputTensor", 0), 9),
        ("directml_operators", ("rows", 1, "operator"), "ARGMAX"),
        ("directml_operators", ("without_limits", "ARGMAX"), "no page"),
        ("dispatch", ("cost", "dispatch_us"), 0),
        ("dml_ep", ("rows", 0, "kernels"), []),
        ("dml_ep", ("rows", 0, "opsets"), [[9, 7]]),
        ("dml_ep", ("failures", 0, "effect"), "odd"),
        ("feature_levels", ("least",), "9.9"),
        ("ort_cpu", ("operators", "Add", 0, 1), True),
        ("ort_cpu_wrong", ("wrong", 0, "sence"), "1.20"),
        ("ort_optimizer", ("rewrites", 0, "pass"), "NoFusion"),
    ],
)
def test_mistake_in_a_file_is_seen(name: str, path: tuple[Any, ...], value: Any) -> None:
    data = copy.deepcopy(read(name))
    place: Any = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    try:
        assert list(contradictions(msgspec.convert(data, KINDS[name])))
    except msgspec.ValidationError as error:
        assert str(path[0]) in str(error) or "unknown field" in str(error)
