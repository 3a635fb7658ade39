"""Parts that called models bring beside their nodes, in one model."""

from __future__ import annotations

from onnx import FunctionProto, ModelProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import files
from dmlc.diagnostics.catalogue import functions as codes
from dmlc.onnx_schema.origin import ModelOrigin


def joined_parts(before: ModelOrigin | None, model: ModelOrigin, call: str) -> tuple[ModelOrigin, str]:
    """The parts of all models so far and of another one, and the name of its call, which no other call has.

    Raises ``DmlcError`` E0510 for versions or functions that differ, E0401 for weights in unrelated folders.
    """
    if before is None:
        frame = ModelProto(ir_version=model.frame.ir_version)
        frame.functions.extend(model.frame.functions)
        versions = {domain: version for domain, version in model.versions.items() if domain}
        return ModelOrigin(frame, versions, model.folder, calls=(call,)), call
    versions = dict(before.versions)
    for domain, version in model.versions.items():
        if domain and versions.setdefault(domain, version) != version:
            message = f"{call} has version {version} of {domain}, and {before.calls[0]} version {versions[domain]}"
            raise fail(codes.CANNOT_JOIN, message, help="export the models with one version")
    frame = ModelProto(ir_version=max(before.frame.ir_version, model.frame.ir_version))
    frame.functions.extend(before.frame.functions)
    known = {_key(function): function for function in before.frame.functions}
    for function in model.frame.functions:
        if known.setdefault(_key(function), function) != function:
            message = f"the function {function.name} of {call} differs from the one of {before.calls[0]}"
            raise fail(codes.CANNOT_JOIN, message, help="rename one of the two functions")
        if _key(function) not in {_key(f) for f in frame.functions}:
            frame.functions.append(function)
    if before.folder is not None and model.folder is not None and before.folder != model.folder:
        message = f"weights of {call} lie below {model.folder}, and others below {before.folder}"
        raise fail(files.CANNOT_LOAD, message, help="call both from a program in a folder above")
    name, number = call, 1
    while name in before.calls:
        number += 1
        name = f"{call}_{number}"
    return ModelOrigin(frame, versions, before.folder or model.folder, calls=(*before.calls, name)), name


def _key(function: FunctionProto) -> tuple[str, str]:
    return function.domain, function.name
