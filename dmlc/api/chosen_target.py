"""Selected target at a feature level, with the facts that this machine's ONNX Runtime reports."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.runtime.installed_kernels import with_installed
from dmlc.targets import Target, load_target, target_names
from dmlc.targets.directml import feature_levels, least_feature_level

#: Names that targets have elsewhere: the names of ONNX Runtime's providers, and of the backends of ``run``.
_NICKNAMES = {
    "dml": "directml",
    "DmlExecutionProvider": "directml",
    "CPUExecutionProvider": "cpu",
    "WebGpuExecutionProvider": "webgpu",
}


def chosen_target(wanted: str | Target, feature_level: str | None) -> Target:
    """The target of that name, or the given one. Raises ``DmlcError`` E0550, E0556 (exit code 2), E0557."""
    name = wanted.name if isinstance(wanted, Target) else wanted
    if isinstance(wanted, Target):
        feature_level = feature_level or wanted.feature_level
    if not isinstance(name, str):
        message = f"a target is a name or a Target, not {type(name).__name__}"
        raise fail(codes.UNKNOWN_TARGET, message, help='write: target="directml"', exit_code=2)
    if name not in target_names():
        help = did_you_mean(_NICKNAMES.get(name, name), target_names()) or f"targets are {', '.join(target_names())}"
        raise fail(codes.UNKNOWN_TARGET, f"there is no target {name}", help=help, exit_code=2)
    target = with_installed(load_target(name))
    if feature_level is None:
        return target
    levels, least = feature_levels(), least_feature_level()
    check_feature_level(feature_level)
    if target.provider is not None and target.feature_level is None:
        message = f"target {name} has no feature levels: they are DirectML's"
        raise fail(codes.UNKNOWN_CHOICE, message, help="leave it out", exit_code=2)
    if target.provider is None:  # no session is made there; DxDispatch's JSON asks for the level
        return replace(target, feature_level=feature_level)
    if levels.index(feature_level) < levels.index(least):
        raise fail(codes.FEATURE_LEVEL, f"ONNX Runtime needs DirectML feature level {least}, not {feature_level}")
    return replace(target, feature_level=feature_level)


def check_feature_level(level: Any) -> None:
    """Raises ``DmlcError`` E0556 (exit code 2) for a feature level that DirectML does not have."""
    levels = feature_levels()
    if not isinstance(level, str) or level not in levels:
        message = f"there is no DirectML feature level {level}"
        raise fail(codes.UNKNOWN_CHOICE, message, help=f"levels are {' '.join(levels)}", exit_code=2)
