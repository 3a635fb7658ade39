"""Model-local functions are inlined where ONNX's own inliner can; what it leaves is carried."""

from __future__ import annotations

from onnx import ModelProto, inliner

from dmlc.importers.inference import bare_model


def inlined(model: ModelProto) -> ModelProto:
    """The model with the bodies of its functions in the place of their calls; itself where it has none."""
    if not model.functions or any(f.attribute_proto for f in model.functions):
        return model  # ONNX's inliner loses the defaults of attributes
    try:
        flat = inliner.inline_local_functions(bare_model(model, {}))
    except Exception:  # ONNX raises what it likes; a model that cannot be inlined is carried as it is
        return model
    out = ModelProto()
    out.CopyFrom(model)
    del out.graph.node[:]
    out.graph.node.extend(flat.graph.node)
    del out.functions[:]
    out.functions.extend(flat.functions)
    return out
