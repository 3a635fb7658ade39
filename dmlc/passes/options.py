"""The options of a compilation, each declared once.

The options of the command line, the keywords of ``dmlc.compile`` with their types and checks, its stub, the page of the
options and the ``options`` of a ledger come from these declarations.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, TypeAlias, get_args, get_origin, get_type_hints

from msgspec import NODEFAULT, Struct, field
from msgspec.structs import fields, replace

from dmlc.diagnostics.limits import DEFAULTS, Limits
from dmlc.ir import Node
from dmlc.ir.fixed_shapes import FixedShape
from dmlc.ir.history import CLASSES, RewriteClass
from dmlc.targets import Target, TargetName, load_target
from dmlc.targets.directml import FeatureLevel

#: The fusions that are made only where they are asked for.
Fusion: TypeAlias = Literal["attention"]
_F32: TypeAlias = Literal["f32"]
#: The groups of options without which a program stays as it is written.
REWRITES, NUMBERS = "rewrites", "numbers and operators"
_TARGET, _SIZES, _SOURCE, _CHECKS = "target", "sizes and ranges", "source", "checks"


class Option(Struct, frozen=True):
    """An option as users meet it: its group, its description, and a value as the command line takes it.

    An option without a group is of Python alone; ``only`` is the one command that has it. ``accepts`` is the type of
    the keyword where it takes more than the field holds. ``common`` options are those that most people need. The rest
    comes from the field: its ``name``, its ``type``, the ``default`` of the keyword, whether it ``repeats``, which is
    whether it may be given several times, and its ``flag``: ``--skip-rule`` for ``skip_rules``, which repeats.
    """

    group: str
    description: str
    example: str = ""
    only: str = ""
    accepts: Any = None
    common: bool = False
    name: str = ""
    type: Any = None
    default: Any = None
    repeats: bool = False
    flag: str = ""

    @property
    def takes(self) -> Any:
        """The type of the keyword."""
        kind = self.type if self.accepts is None else self.accepts
        return kind if self.default is not None else kind | None

    @property
    def words(self) -> tuple[str, ...]:
        """The words that it takes; empty if it takes others too."""
        kinds = (self.type, *get_args(self.type))
        return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


class Tuner(Protocol):
    """Times of the lowerings of nodes on the device of the target."""

    def times(
        self, nodes: Sequence[Node], classes: Mapping[str, str], binding: Mapping[str, int]
    ) -> Mapping[str, float]:
        """The nanoseconds of the lowerings of these names and classes at some sizes, of which only those are there that
        were timed and are right; and under ``noise`` how many times faster one must be to count as faster.

        The nodes are in their order in the graph. The results of the last one are lowered.
        """

    def summary(self) -> str:
        """The device, and how much was timed on it."""


class Options(Struct, frozen=True, kw_only=True):
    """The target and the settings of a compilation, checked.

    Bounds of ``ranges`` are finite or infinite numbers, ``profiles`` the sizes of each program, ``opset`` that of the
    target where the user asks for none. A field that is not declared as an option is set by dmlc: ``profile`` are the
    bound sizes that a profile gives, ``tuner`` has the times of lowerings. With ``decompose`` these operators are
    written in primitive ones, and no other pass runs.
    """

    target: Annotated[
        Target,
        Option(
            _TARGET,
            "directml, webgpu, cpu, onnx or numpy (default: directml)",
            "NAME",
            accepts=TargetName | Target,
            default="directml",
            common=True,
        ),
    ] = field(default_factory=lambda: load_target("directml"))
    feature_level: Annotated[FeatureLevel | None, Option(_TARGET, "DirectML's feature level to rely on", "5.0")] = None
    opset: Annotated[int, Option(_TARGET, "the ONNX opset to emit (default: the target's)", "17")] = field(
        default_factory=lambda: load_target("directml").opset
    )
    probed: Annotated[
        Any,
        Option(
            _TARGET,
            "take what dmlc doctor --probe wrote of a device before the tables of the package",
            "probe.json",
            accepts=str | os.PathLike[str],
        ),
    ] = None
    bind: Annotated[Mapping[str, int], Option(_SIZES, "fix a dynamic size", "N=4", common=True)] = {}
    shapes: Annotated[
        Mapping[str, FixedShape],
        Option(
            _SIZES,
            "fix the sizes of an input, or its rank; _, in Python None, leaves a size dynamic",
            "x=1,3,_",
            accepts=Mapping[str, Sequence[int | None]],
            common=True,
        ),
    ] = {}
    ranges: Annotated[
        Mapping[str, tuple[float, float]],
        Option(
            _SIZES,
            "promise that every element of an input is within these bounds and not NaN, for rewrites",
            "x=0.0..1.0",
        ),
    ] = {}
    profiles: Annotated[
        Sequence[Mapping[str, int]],
        Option(
            _SIZES,
            "compile for each combination of these sizes too: files OUT.batch1_seq128.onnx, and an index",
            "batch=1,8",
            only="compile",
            accepts=Mapping[str, int | Sequence[int]],
        ),
    ] = ()
    model: Annotated[str | None, Option(_SOURCE, "which model, where the file holds several", "NAME")] = None
    include: Annotated[
        Sequence[str | os.PathLike[str]],
        Option(_SOURCE, "a folder in which use and load look after the program's own", "DIR"),
    ] = ()
    limits: Annotated[
        Limits,
        Option(
            _SOURCE,
            "read more, or less, than is usual; see dmlc explain limits",
            "nodes=3000000",
            accepts=Mapping[str, int],
        ),
    ] = DEFAULTS
    exact: Annotated[bool, Option(REWRITES, "only rewrites that keep every bit", common=True)] = False
    allow: Annotated[
        Sequence[RewriteClass],
        Option(REWRITES, "also rewrites that are equal only under a precondition on values"),
    ] = ()
    skip_rules: Annotated[Collection[str], Option(REWRITES, "a rewrite that must not fire", "RULE")] = ()
    only_rules: Annotated[
        Collection[str] | None, Option(REWRITES, "the only rewrite that may fire; mandatory rules always do", "RULE")
    ] = None
    tune: Annotated[
        bool, Option(REWRITES, "time the lowerings of each node on this machine's device, and take the fastest")
    ] = False
    tune_seconds: Annotated[int, Option(REWRITES, "the most seconds that timing takes (default: 60)", "120")] = 60
    tuning: Annotated[
        str | None,
        Option(
            REWRITES,
            "take the lowerings that are fastest by the times in this file; tune writes it",
            "model.tuning.json",
            accepts=str | os.PathLike[str],
        ),
    ] = None
    f64: Annotated[_F32 | None, Option(NUMBERS, "compute f64 in f32; inputs and outputs keep their types")] = None
    accumulate: Annotated[
        _F32 | None, Option(NUMBERS, "compute in f32 the squares and products of f16 that are summed")
    ] = None
    fuse: Annotated[Sequence[Fusion], Option(NUMBERS, "also make attention one operator (directml)")] = ()
    lower_hardmax: Annotated[bool, Option(NUMBERS, "lower hardmax over one axis too")] = False
    strict: Annotated[bool, Option(_CHECKS, "a warning of the target or the numbers is an error", common=True)] = False
    progress: Annotated[
        Callable[[str], None] | None, Option("", "called with the name of each pass before it runs")
    ] = None
    profile: Mapping[str, int] = {}
    tuner: Tuner | None = None
    decompose: frozenset[str] = frozenset()

    @property
    def allowed(self) -> frozenset[str]:
        """The classes of rewrites that may be applied."""
        exact, reassociates, _ = CLASSES
        return frozenset((exact,) if self.exact else (exact, reassociates, *self.allow))

    def as_written(self, target: Target) -> Options:
        """The options for a program as it is written: no rewrite fires but the mandatory rules of the target."""
        return replace(self, target=target, progress=None, **AS_WRITTEN)

    def recorded(self) -> dict[str, Any]:
        """The options that rewrites depend on, beside the target and the opset: plain data, which a ledger keeps."""
        groups = (_TARGET, _SIZES, REWRITES, NUMBERS)
        names = [option.name for option in OPTIONS.values() if option.group in groups]
        elsewhere = ("target", "opset", "profiles", "tuning", "probed")  # the ledger has the lowerings, and no path
        found = {name: _plain(getattr(self, name)) for name in names if name not in elsewhere}
        found["feature_level"] = self.target.feature_level
        return found | ({"decompose": sorted(self.decompose)} if self.decompose else {})


def _plain(value: Any) -> Any:
    """The value as JSON has it; None for an infinite bound."""
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, (frozenset, list, tuple)):
        return [_plain(one) for one in (sorted(value) if isinstance(value, frozenset) else value)]
    return None if isinstance(value, float) and math.isinf(value) else value


def _declared() -> Iterator[Option]:
    types = get_type_hints(Options, include_extras=True)
    for one in fields(Options):
        if get_origin(types[one.name]) is Annotated:
            kind, option = get_args(types[one.name])
            default = option.default if option.accepts or one.default is NODEFAULT else one.default
            found = replace(option, name=one.name, type=kind, default=default)
            kinds = (found.takes, *get_args(found.takes))
            repeats = any(get_origin(kind) in (Collection, Mapping, Sequence) for kind in kinds)
            name = (one.name.removesuffix("s") if repeats else one.name).replace("_", "-")
            yield replace(found, repeats=repeats, flag=f"--{name}" if found.group else "")


#: The declared options by name, in the order of their declaration.
OPTIONS: dict[str, Option] = {option.name: option for option in _declared()}
#: The values of options with which no rewrite fires but mandatory ones.
AS_WRITTEN: dict[str, Any] = {
    **{option.name: option.default for option in OPTIONS.values() if option.group in (REWRITES, NUMBERS)},
    "only_rules": (),
}
