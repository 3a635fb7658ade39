"""A model by ONNX's own reference implementation of each operator (``onnx.reference``)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, load_external_data_for_model

from dmlc.inference.onnx_evaluator import onnx_evaluator
from dmlc.runtime.runnable import NotRunnable, RunFailed


class OnnxReference:
    """One model, whose external data lies in ``folder``. Raises ``NotRunnable`` for an operator that ONNX does not
    implement."""

    def __init__(self, model: ModelProto, folder: Path | None = None) -> None:
        own = ModelProto()
        own.CopyFrom(model)
        held = {tensor.name for tensor in model.graph.initializer}
        self.inputs: tuple[str, ...] = tuple(info.name for info in model.graph.input if info.name not in held)
        self.outputs: tuple[str, ...] = tuple(info.name for info in model.graph.output)
        try:
            if folder is not None:
                load_external_data_for_model(own, str(folder))
            self._evaluator = onnx_evaluator(own)
        except Exception as error:  # whatever the package raises
            raise NotRunnable(f"ONNX's reference cannot load the model: {error}") from None

    def run(self, inputs: Mapping[str, Any], wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """The outputs by name, or the ``wanted`` values that are tensors. Raises ``RunFailed``."""
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy warns of means of nothing
                found: Any = self._evaluator.run(None, dict(inputs), intermediate=True)
        except Exception as error:  # as above
            raise RunFailed(f"{type(error).__name__}: {error}") from None
        if wanted is None:
            return {name: found[name] for name in self.outputs}
        return {name: found[name] for name in wanted if isinstance(found.get(name), np.ndarray)}
