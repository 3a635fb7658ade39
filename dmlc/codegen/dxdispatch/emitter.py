"""A graph as the JSON file that Microsoft's DxDispatch runs, and the data that lies beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dmlc.codegen.artifact import Artifact, Signature, signature_of
from dmlc.codegen.dxdispatch.builder import DispatchBuilder, tensor_desc, whole
from dmlc.codegen.dxdispatch.file_names import file_name, unique
from dmlc.codegen.dxdispatch.json_text import document, numbers, type_name
from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowering_of, static, view_of
from dmlc.codegen.dxdispatch.table import newest_level
from dmlc.codegen.dxdispatch.view import Buffer, BufferView, packed
from dmlc.diagnostics import Label, fail, option
from dmlc.diagnostics.catalogue import dxdispatch as codes
from dmlc.ir import FOREIGN, Array, Graph, Node, TensorType, Value, dim_names, evaluate
from dmlc.ir.dtype import bool_
from dmlc.ir.fixed_shapes import shape_option
from dmlc.ops.constant import CONSTANT

#: Constants up to this many elements are written in the file.
_WRITTEN = 16
#: Results of up to this many elements are printed.
_PRINTED = 64


def emit(graph: Graph, folder: str | None = None, feature_level: str | None = None) -> Artifact:
    """The file's text, for a graph whose sizes are all known.

    ``folder`` holds the data beside the file: inputs in it, larger constants (the artifact's ``arrays``, by path) in
    ``constants``, results in ``out``, so that none of them overwrites another. Without it all constants are written
    in the file. Raises ``DmlcError`` E0580 to E0583, E0503.
    """
    _check_sizes(graph)
    build = DispatchBuilder(feature_level or newest_level())
    views: dict[Value, BufferView] = {}
    files = input_files(signature_of(graph), folder)
    for value in graph.inputs:
        views[value] = _input(value, files[value.name or ""], build)
    for node in graph:
        if node.op is not CONSTANT:
            _lower(node, build, views)
    build.node = None
    outputs = _outputs([(name, view_of(value, build, views)) for name, value in graph.outputs], build)
    return _artifact(graph, build, [views[value] for value in graph.inputs], outputs, folder)


def input_files(signature: Signature, folder: str | None) -> dict[str, str]:
    """The ``.npy`` file of each input, relative to the JSON file."""
    names = [name for name, _ in signature.inputs]
    return {name: _path(folder, f"{file}.npy") for name, file in zip(names, _file_names(names), strict=True)}


# --- the graph


def _check_sizes(graph: Graph) -> None:
    """Raises ``DmlcError`` E0581 where a size is not known, E0580 for a type that DirectML has not."""
    for value in graph.inputs:
        if value.type.dtype is FOREIGN:
            if _has_open_rank(graph, value):
                message = f"DxDispatch's JSON holds fixed sizes, and the model declares {value.name} without a shape"
                raise fail(codes.UNBOUND, message, help=f"fix it: {shape_option(value.name or '')}")
            raise fail(codes.NO_OPERATOR, f"input {value.name} has a type that DirectML does not have")
    names = {name: None for value in graph.inputs for size in value.shape for name in dim_names(size)}
    if names:
        message = f"DxDispatch's JSON holds fixed sizes, and these dims are not bound: {', '.join(names)}"
        raise fail(codes.UNBOUND, message, help=f"fix them: {_fixes(graph)}")
    for node in graph:
        for result in node.results:
            if not result.type.is_static:
                message = f"DxDispatch's JSON holds fixed sizes, and {_title(node)} gives {result.type}"
                raise fail(codes.UNBOUND, message, *map(Label, node.spans[:1]), help="its size depends on data")


def _fixes(graph: Graph) -> str:
    """The options that fix the open sizes: of dims with a name ``--bind``, of inputs with others ``--shape``."""
    from dmlc.inference.open_sizes import nameless_dims  # loads onnx, which programs do without

    nameless = {} if graph.origin is None else nameless_dims(graph)
    values = [value for value in graph.inputs if any(dim_names(size) & nameless.keys() for size in value.shape)]
    fixed = {name for value in values for size in value.shape for name in dim_names(size)}
    names = dict.fromkeys(name for value in graph.inputs for size in value.shape for name in dim_names(size))
    binding = {name: _example(graph, name) for name in names if name not in fixed}
    bound = option(" ".join(f"--bind {name}={size}" for name, size in binding.items()), f"bind={binding}")
    out = [bound] if binding else []
    for value in values:
        sizes = [evaluate(size, {n: _example(graph, n) for n in dim_names(size)}) for size in value.shape]
        out.append(shape_option(value.name or "", tuple(sizes)))
    return option(" ", ", ").join(out)


def _has_open_rank(graph: Graph, value: Value) -> bool:
    if graph.origin is None:
        return False
    from dmlc.inference.open_sizes import has_open_rank

    info = graph.origin.inputs.get(value.name or "")
    return info is not None and has_open_rank(info.type)


def _example(graph: Graph, name: str) -> int:
    low, _ = graph.dims.bounds.get(name, (1, 1))
    return max(1, int(low))


def _title(node: Node) -> str:
    kind = getattr(node.attributes, "full_name", "")
    kind = f"onnx.{kind}" if kind else node.op.name
    return f"node {node.name} ({kind})" if node.name else kind


def _input(value: Value, file: str, build: DispatchBuilder) -> BufferView:
    sizes = static(value)
    if 0 in sizes:
        type = TensorType(value.type.dtype, sizes)
        labels = [Label(value.span)] if value.span else []
        raise fail(codes.EMPTY, f"DirectML has no empty tensors, and {value.name} is {type}", *labels)
    view = build.new(value.type.dtype, sizes)
    view.buffer.name, view.buffer.file = value.name or "", file
    return view


def _lower(node: Node, build: DispatchBuilder, views: dict[Value, BufferView]) -> None:
    build.node = node
    lower = lowering_of(node)
    if lower is None:
        message = f"DxDispatch's JSON cannot say {_title(node)}: the language has no operation for it"
        raise build.refuse(codes.NO_OPERATOR, message, "write it with the language's operations, or emit ONNX")
    made = lower(DispatchCall(build, node, views))
    for result, view in zip(node.results, made if isinstance(made, list) else [made], strict=True):
        views[result] = view
        if result.name and not view.buffer.name and whole(view):
            view.buffer.name = result.name


def _outputs(views: list[tuple[str, BufferView]], build: DispatchBuilder) -> list[tuple[str, BufferView]]:
    """The outputs, each as a whole buffer with the output's name, by which it is printed, written and verified.

    A view of an input, of another output or of a part of a buffer is copied. So is a bool input that is an output
    under its own name, since the emitter does not know the type in the input's file.
    """
    named: set[Buffer] = set()
    out = []
    for name, view in views:
        is_input = bool(view.buffer.file)
        is_own = view.buffer.name == name if is_input else view.buffer not in named
        if not whole(view) or not is_own or (is_input and view.dtype is bool_):
            view = packed(build.copy(view).buffer, view.sizes)
        view.buffer.name = name
        named.add(view.buffer)
        out.append((name, view))
    return out


# --- the file


def _artifact(
    graph: Graph,
    build: DispatchBuilder,
    inputs: list[BufferView],
    outputs: list[tuple[str, BufferView]],
    folder: str | None,
) -> Artifact:
    buffers = list(dict.fromkeys([*(view.buffer for view in inputs), *_bound(build), *(v.buffer for _, v in outputs)]))
    names = _resource_names(buffers, [view.buffer for view in (*inputs, *(view for _, view in outputs))])
    files = _data_files(buffers, names, folder)
    resources = {names[buffer]: _resource(buffer, files) for buffer in buffers}
    dispatchables: dict[str, Any] = {}
    commands: list[dict[str, Any]] = []
    for place, dispatch in enumerate(build.dispatches, 1):
        name = f"{place}_{dispatch.operator.lower()}"
        desc = {key: _field(value, tensor_desc) for key, value in dispatch.fields.items()}
        dispatchables[name] = {"type": f"DML_OPERATOR_{dispatch.operator}", "desc": _spelled(desc)}
        bound = {k: v for k, v in dispatch.fields.items() if _views(v)}
        bindings = {key: _field(value, lambda view: names[view.buffer]) for key, value in bound.items()}
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": bindings})
    commands += _results(outputs, names, folder)
    return Artifact(
        kind="dxdispatch",
        payload=document(resources, dispatchables, commands),
        signature=signature_of(graph),
        report=_report(inputs, commands),
        arrays={path: _stored(buffer) for buffer, path in files.items()},
    )


def _bound(build: DispatchBuilder) -> Iterable[Buffer]:
    for dispatch in build.dispatches:
        for value in dispatch.fields.values():
            yield from (view.buffer for view in _views(value))


def _views(value: Any) -> list[BufferView]:
    return [view for view in (value if isinstance(value, list) else [value]) if isinstance(view, BufferView)]


def _field(value: Any, say: Callable[[BufferView], Any]) -> Any:
    if isinstance(value, BufferView):
        return say(value)
    return [say(view) for view in value] if isinstance(value, list) and _views(value) else value


def _spelled(desc: dict[str, Any]) -> dict[str, Any]:
    if "Function" in desc:
        desc["Function"] = f"DML_REDUCE_FUNCTION_{desc['Function']}"
    return desc


def _wanted(buffer: Buffer) -> str:
    return buffer.name or ("constant" if buffer.iota or buffer.data is not None else "t")


def _resource_names(buffers: list[Buffer], first: list[Buffer]) -> dict[Buffer, str]:
    """A name for each buffer. Inputs and outputs keep theirs; others of the same name get a number."""
    ordered = list(dict.fromkeys([*first, *buffers]))
    return dict(zip(ordered, unique([_wanted(buffer) for buffer in ordered]), strict=True))


def _data_files(buffers: list[Buffer], names: Mapping[Buffer, str], folder: str | None) -> dict[Buffer, str]:
    """The files of larger constants; none without a folder."""
    if folder is None:
        return {}
    large = [buffer for buffer in buffers if buffer.data is not None and buffer.data.size > _WRITTEN]
    files = _file_names([names[buffer] for buffer in large])
    return {buffer: f"{folder}/constants/{file}.npy" for buffer, file in zip(large, files, strict=True)}


def _stored(buffer: Buffer) -> Array:
    assert buffer.data is not None
    return buffer.data.view("u1") if buffer.data.dtype.kind == "b" else buffer.data


def _resource(buffer: Buffer, files: Mapping[Buffer, str]) -> dict[str, Any]:
    """A buffer. A file of bools may have the type i1 or u1, so the type is left to the file."""
    if buffer.file:
        typed = {} if buffer.dtype is bool_ else {"initialValuesDataType": type_name(buffer.dtype)}
        return {**typed, "initialValues": {"sourcePath": buffer.file}}
    values: Any = {"valueCount": buffer.count, "value": 0}
    if buffer.iota:
        values = {"valueCount": buffer.count, "valueStart": 0, "valueDelta": 1}
    elif buffer in files:
        values = {"sourcePath": files[buffer]}
    elif buffer.data is not None:
        values = numbers(buffer.data)
    return {"initialValuesDataType": type_name(buffer.dtype), "initialValues": values}


def _results(
    outputs: list[tuple[str, BufferView]], names: dict[Buffer, str], folder: str | None
) -> list[dict[str, Any]]:
    """Print each small output and write each output to a file."""
    small = [view.buffer for _, view in outputs if view.count <= _PRINTED]
    files = _file_names([name for name, _ in outputs])
    written = [
        {
            "type": "writeFile",
            "resource": names[view.buffer],
            "targetPath": _path(folder, f"out/{file}.npy"),
            "dimensions": list(view.sizes) or [1],
        }
        for (_, view), file in zip(outputs, files, strict=True)
    ]
    return [*[{"type": "print", "resource": names[buffer]} for buffer in small], *written]


def _report(inputs: list[BufferView], commands: list[dict[str, Any]]) -> tuple[str, ...]:
    reads = [view.buffer.file for view in inputs]
    writes = [command["targetPath"] for command in commands if command["type"] == "writeFile"]
    dispatches = sum(command["type"] == "dispatch" for command in commands)
    said = [f"{dispatches} dispatches; DxDispatch writes {', '.join(writes)}"]
    return (*([f"DxDispatch reads {', '.join(reads)}"] if reads else []), *said)


# --- names


def _path(folder: str | None, name: str) -> str:
    return name if folder is None else f"{folder}/{name}"


def _file_names(names: list[str]) -> list[str]:
    """File names that differ on every system."""
    return unique([file_name(name) for name in names], ignoring_case=True)
