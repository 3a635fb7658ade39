"""A model by ONNX's own reference implementation of each operator (``onnx.reference``)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto, load_external_data_for_model
from onnx.reference import ReferenceEvaluator

from dmlc.verify.closed_side import ClosedSide
from dmlc.verify.inputs import Feeds, Interface
from dmlc.verify.onnx_interface import interfaces, required_inputs
from dmlc.verify.trace import NotVerifiable, RunFailed


class ReferenceSide(ClosedSide):
    """One model. Raises ``NotVerifiable`` for an operator that ONNX does not implement."""

    def __init__(self, model: ModelProto, folder: Path | None = None) -> None:
        self._model = ModelProto()
        self._model.CopyFrom(model)
        needed, _ = required_inputs(model.graph, model.ir_version)
        outputs = [info.name for info in model.graph.output]
        super().__init__([info.name for info in needed], outputs, len(model.graph.node), defines_empty=False)
        try:
            if folder is not None:
                load_external_data_for_model(self._model, str(folder))
            self._evaluator = ReferenceEvaluator(self._model)
        except Exception as error:  # whatever the package raises
            raise NotVerifiable(f"ONNX's reference cannot load the model: {error}") from None

    def interfaces(self) -> list[Interface]:
        return interfaces(self._model)

    def run(self, feeds: Feeds) -> dict[str, Any]:
        found = self._all(feeds)
        return {name: found[name] for name in self.output_names}

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        """The values of these names that are tensors. Raises ``RunFailed``."""
        found = self._all(feeds)
        return {name: found[name] for name in names if isinstance(found.get(name), np.ndarray)}

    def _all(self, feeds: Feeds) -> dict[str, Any]:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # NumPy warns of means of nothing
                found: Any = self._evaluator.run(None, dict(feeds), intermediate=True)
        except Exception as error:  # as above
            raise RunFailed(f"{type(error).__name__}: {error}") from None
        return dict(found)
