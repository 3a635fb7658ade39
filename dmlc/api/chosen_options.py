"""Keywords of ``compile`` become checked options."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from dmlc.api.arguments import checked_argument
from dmlc.api.chosen_target import chosen_target
from dmlc.api.measured_file import checked_probe
from dmlc.diagnostics import Diagnostic, did_you_mean, fail, option
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import integer_of
from dmlc.diagnostics.limits import Limits
from dmlc.ir.fixed_shapes import FixedShape, checked_shapes
from dmlc.ops.ranges import checked_ranges
from dmlc.passes.inventory import chosen_rules
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES
from dmlc.passes.options import OPTIONS, Options
from dmlc.runtime.binding import checked_binding
from dmlc.runtime.profiles import checked_profiles
from dmlc.targets import Target

#: The checks of options whose type does not say all.
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "bind": checked_binding,
    "limits": Limits.of,
    "probed": checked_probe,
    "ranges": checked_ranges,
    "shapes": checked_shapes,
}
_LARGEST_ON_DEVICE = 2**32 - 1
#: Options that are checked with others.
_TOGETHER = ("target", "feature_level", "opset", "profiles", "skip_rules", "only_rules")


def chosen_options(given: Mapping[str, Any]) -> Options:
    """The options of keywords of ``compile``.

    Raises ``TypeError`` for a keyword that does not exist, ``DmlcError`` E0556 (exit code 2) for a value of another
    type and for options that contradict each other; for a target E0550 and E0557, for an opset E0552, for sizes E0337
    and E0555, for a range E0342.
    """
    require_options("compile", given)
    values = {name: given.get(name, option.default) for name, option in OPTIONS.items()}
    for name, value in values.items():
        if name not in _TOGETHER:
            check = _CHECKS.get(name)
            values[name] = check(value) if check else checked_argument(name, value)
    target = chosen_target(values["target"], values["feature_level"])
    skipped, only = chosen_rules(values["skip_rules"], values["only_rules"])
    values |= {
        "target": target,
        "opset": _opset(target, values["opset"]),
        "profiles": checked_profiles(values["profiles"], values["bind"]),
        "skip_rules": skipped,
        "only_rules": only,
    }
    options = Options(**values)
    _check_together(options)
    check_device_sizes(target, options.bind, options.shapes)
    return replace(options, allow=(RANGE,) if RANGE in options.allow else ())


def require_options(function: str, given: Iterable[str]) -> None:
    """Raises ``TypeError`` for a keyword of a public function that is not an option."""
    for name in given:
        if name not in OPTIONS:
            guess = did_you_mean(name, OPTIONS)
            raise TypeError(f"{function}() got an unexpected keyword argument {name!r}{guess and f'; {guess}'}")


def _opset(target: Target, opset: Any) -> int:
    """The opset to emit. Raises ``DmlcError`` E0552 for one that the target does not take."""
    if opset is None:
        return target.opset
    found = integer_of(opset)
    if found is None or not target.min_opset <= found <= target.max_opset:
        text = f"target {target.name} takes opsets {target.min_opset} to {target.max_opset}, not {opset!r}"
        raise fail(codes.OPSET_OUT_OF_RANGE, text)
    return found


def check_device_sizes(target: Target, bind: Mapping[str, int], shapes: Mapping[str, FixedShape]) -> None:
    """Raises ``DmlcError`` E0555 (exit code 2) for a size that DirectML cannot hold: DML_BUFFER_TENSOR_DESC has sizes
    of 32 bits."""
    if target.backend != "dml":
        return
    sizes = [(f"{name}={size}", size) for name, size in bind.items()]
    sizes += [(f"a size of {name}, {size},", size) for name, shape in shapes.items() for size in shape if size]
    for what, size in sizes:
        if size > _LARGEST_ON_DEVICE:
            message = f"{what} is out of bounds: DirectML holds sizes up to 2^32 - 1 ({_LARGEST_ON_DEVICE})"
            raise fail(codes.BAD_BINDING, message, exit_code=2)


def _check_together(options: Options) -> None:
    """Raises ``DmlcError`` E0556 (exit code 2) for options that contradict each other or the target."""
    message = help = ""
    if options.exact and set(options.allow) - {EXACT}:
        allowed = ", ".join(options.allow)
        given = option(f"--exact and --allow {allowed}", f"exact and allow={allowed}")
        message, help = f"{given} contradict each other", "give one of them"
    elif options.accumulate and REASSOCIATES not in options.allowed:
        given = option("--exact and --accumulate f32", "exact and accumulate=f32")
        message, help = f"{given} contradict each other: results are rounded elsewhere", "give one of them"
    elif options.fuse and (options.target.provider is None or not options.target.own_schemas):
        message = f"target {options.target.name} has no operator for attention"
        help = f"leave out {option('--fuse attention', 'fuse=attention')}: it is for target directml"
    elif options.tune_seconds != OPTIONS["tune_seconds"].default and not options.tune:
        message = f"{option('--tune-seconds', 'tune_seconds')} is the time that tune takes, which is not asked for"
        help = f"add {option('--tune', 'tune=True')}"
    elif options.probed is not None and options.probed.provider != options.target.backend:
        message = f"probed has rows of {options.probed.provider}, and target {options.target.name} runs elsewhere"
    if message:
        raise fail(codes.UNKNOWN_CHOICE, message, help=help, exit_code=2)


def consistent_help(diagnostic: Diagnostic, options: Options) -> Diagnostic:
    """The diagnostic with a help that the other options allow: ``--accumulate`` and ``--exact`` exclude each other."""
    if REASSOCIATES in options.allowed or not diagnostic.help.startswith("--accumulate f32"):
        return diagnostic
    return dataclasses.replace(diagnostic, help=f"without --exact, {diagnostic.help}")
