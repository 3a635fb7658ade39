"""A graph as the JSON of Microsoft's DxDispatch: one dispatch for each DirectML operator."""

from dmlc.codegen.dxdispatch import lowerings
from dmlc.codegen.dxdispatch.builder import MAX_RANK
from dmlc.codegen.dxdispatch.emitter import emit, input_files

__all__ = ["MAX_RANK", "emit", "input_files", "lowerings"]
