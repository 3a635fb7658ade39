"""ONNX Runtime on its CPU provider, with inputs and outputs bound before anything is timed."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
import onnxruntime
from onnx import ModelProto, numpy_helper

_LEVELS = {
    "all": onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
    "none": onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
}


@cache
def _shared_arena() -> None:
    """One arena for the tensors between nodes of all sessions.

    With one each, it is luck which memory a session gets, and the same model in two sessions differs by a tenth.
    """
    kinds = onnxruntime.OrtAllocatorType.ORT_ARENA_ALLOCATOR, onnxruntime.OrtMemType.DEFAULT
    memory = onnxruntime.OrtMemoryInfo("Cpu", kinds[0], 0, kinds[1])
    onnxruntime.create_and_register_allocator(memory, None)


def form_of(model: ModelProto) -> tuple[object, ...]:
    """A text that models have in common if their nodes, attributes and constants are the same, whatever their names."""
    numbers: dict[str, object] = {
        tensor.name: (tensor.data_type, *tensor.dims, numpy_helper.to_array(tensor).tobytes())
        for tensor in model.graph.initializer
    }
    for place, info in enumerate(model.graph.input):
        numbers.setdefault(info.name, place)
    out: list[object] = []
    for node in model.graph.node:
        attributes = sorted(entry.SerializeToString() for entry in node.attribute)
        out.append((node.domain, node.op_type, tuple([numbers.get(name) for name in node.input]), *attributes))
        numbers.update({name: (len(out), place) for place, name in enumerate(node.output)})
    return (*out, *(numbers[info.name] for info in model.graph.output))


class SessionRun:
    """A model, its inputs, and room for its outputs. ``form`` tells whether another model is the same.

    Threads do not spin between calls: those of one variant would take the cores from the next.
    """

    def __init__(self, model: ModelProto, feeds: Mapping[str, np.ndarray], threads: int, level: str = "all") -> None:
        _shared_arena()
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.graph_optimization_level = _LEVELS[level]
        options.log_severity_level = 4
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        options.add_session_config_entry("session.use_env_allocators", "1")
        self.form = form_of(model)
        self._session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
        self._feeds = {i.name: np.ascontiguousarray(feeds[i.name]) for i in self._session.get_inputs()}
        self._binding = self._session.io_binding()
        for name, array in self._feeds.items():
            self._binding.bind_input(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)
        names = [o.name for o in self._session.get_outputs()]
        self._outputs = [np.empty_like(np.asarray(a)) for a in self._session.run(names, self._feeds)]
        for name, array in zip(names, self._outputs, strict=True):
            self._binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

    def __call__(self) -> object:
        return self._session.run_with_iobinding(self._binding)

    def results(self) -> list[np.ndarray]:
        self()
        return [array.copy() for array in self._outputs]
