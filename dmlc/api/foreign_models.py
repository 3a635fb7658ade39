"""Models that other libraries hold: how each becomes an ONNX model, and what to write where dmlc cannot do it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE

if TYPE_CHECKING:
    import onnx

_TAKEN = "a path, a dmlc.Graph, a dmlc.Source, an onnx.ModelProto or the bytes of a model"
#: The two lines that make a model of an object, by the start of the name of its class or of one that it derives from.
_WAYS = (
    ("torch.nn.", "program = torch.onnx.export(model, args, dynamo=True); dmlc.compile(program)"),
    ("torch.jit.", "program = torch.onnx.export(model, args, dynamo=True); dmlc.compile(program)"),
    ("torch.export.", "program = torch.onnx.export(exported, dynamo=True); dmlc.compile(program)"),
    ("keras.", "model, _ = tf2onnx.convert.from_keras(model); dmlc.compile(model)"),
    ("tensorflow.", "model, _ = tf2onnx.convert.from_keras(model); dmlc.compile(model)"),
    ("sklearn.base.", "model = skl2onnx.to_onnx(estimator, X[:1]); dmlc.compile(model)"),
    ("onnxruntime.", "model = onnx.load('model.onnx'), the file of the session; dmlc.compile(model)"),
    ("onnx.onnx_ml_pb2.GraphProto", "model = onnx.helper.make_model(graph); dmlc.compile(model)"),
    ("dmlc.builder.tensor.Tensor", "g.output('y', y); dmlc.compile(g), where g is the graph of the tensor's inputs"),
    ("dmlc.api.program.Program", "program.save('model.onnx'); dmlc.compile('model.onnx')"),
)
_ANY_WAY = "onnx.save(model, 'model.onnx'); dmlc.compile('model.onnx')"


def foreign_model(source: Any, depth: int = 0) -> tuple[onnx.ModelProto, Path | None]:
    """The ONNX model that an object is or holds, not shared with it, and the folder of its external data.

    Objects are models, their bytes, ``onnx_ir`` models, and those whose ``model_proto`` is one of these. Raises
    ``DmlcError`` E0556 (exit code 2) for any other, with the two lines that make a model of it.
    """
    import onnx

    if isinstance(source, onnx.ModelProto):
        copy = onnx.ModelProto()
        copy.CopyFrom(source)
        return copy, None
    if isinstance(source, (bytes, bytearray, memoryview)):
        return _of_bytes(bytes(source)), None
    library = sys.modules.get("onnx_ir")  # loaded by every program that has such a model
    if library is not None and isinstance(source, library.Model):
        return library.to_proto(source), _weights_folder(library, source)
    if depth == 0 and not isinstance(source, type) and hasattr(source, "model_proto"):
        return foreign_model(source.model_proto, depth + 1)
    raise refusal(source)


def _of_bytes(data: bytes) -> onnx.ModelProto:
    from dmlc import importers

    try:
        model: onnx.ModelProto = importers.read_model(Path("the source"), data)
    except DmlcError as error:
        raise fail(
            error.diagnostics[0].code,
            "these bytes are not an ONNX model",
            help="for the text of a program: source = dmlc.Source(text); dmlc.compile(source)",
        ) from None
    return model


def _weights_folder(library: Any, model: Any) -> Path | None:
    """The folder that the locations of a model's external weights are relative to; None for a model without."""
    tensors = [value.const_value for value in model.graph.initializers.values()]
    folders = {str(t.base_dir) for t in tensors if isinstance(t, library.ExternalTensor)}
    if len(folders) > 1:
        message = f"the model's weights lie in several folders: {', '.join(sorted(folders))}"
        raise fail(
            UNKNOWN_CHOICE, message, help="onnx_ir.save(model, 'model.onnx'); dmlc.compile('model.onnx')", exit_code=2
        )
    return Path(folders.pop()) if folders else None


def refusal(source: object) -> DmlcError:
    """The error for an object that is not compiled, with the two lines that make a model of it."""
    kind = source if isinstance(source, type) else type(source)
    names = [f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__]
    way = next((way for start, way in _WAYS if any(name.startswith(start) for name in names)), _ANY_WAY)
    what = f"the class {kind.__name__}" if isinstance(source, type) else kind.__name__
    return fail(UNKNOWN_CHOICE, f"{_TAKEN} is compiled, not {what}", help=f"write: {way}", exit_code=2)
