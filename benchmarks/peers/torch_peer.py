"""PyTorch on the CPU: as it is, and compiled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from benchmarks.measure import FunctionRun, Runner
from benchmarks.operations import Operation, back, kept, last, sizes


def runners(operation: Operation, arrays: Sequence[np.ndarray], threads: int) -> dict[str, Runner]:
    torch.set_num_threads(threads)
    torch.compiler.reset()
    function = _function(operation, arrays[0].shape)
    tensors = [torch.from_numpy(a) for a in arrays]
    compiled = torch.compile(function, dynamic=False)
    return {"torch": _Run(function, *tensors), "torch.compile": _Run(compiled, *tensors)}


class _Run(FunctionRun):
    def __call__(self) -> object:
        with torch.inference_mode():
            return super().__call__()

    def results(self) -> list[np.ndarray]:
        with torch.inference_mode():
            return super().results()


def _function(operation: Operation, shape: Sequence[int]) -> Callable[..., Any]:
    name, axes = operation.name, operation.axes
    order = last(len(shape), axes)
    outer, inner = sizes(shape, kept(len(shape), axes)), sizes(shape, axes)

    def flat(x: Any) -> Any:
        return x.permute(order).reshape((*outer, -1))

    def hardmax(x: Any) -> Any:
        y = flat(x)
        hot = torch.zeros_like(y).scatter_(-1, y.argmax(-1, keepdim=True), 1)
        return hot.reshape((*outer, *inner)).permute(back(order))

    def softmax(x: Any) -> Any:
        if len(axes) == 1:
            return torch.softmax(x, axes[0])
        e = torch.exp(x - x.amax(axes, keepdim=True))
        return e / e.sum(axes, keepdim=True)

    def layernorm(x: Any) -> Any:
        centred = x - x.mean(axes, keepdim=True)
        return centred / torch.sqrt((centred**2).mean(axes, keepdim=True) + 1e-5)

    table: dict[str, Callable[..., Any]] = {
        "argmax": lambda x: x.argmax(axes[0]) if len(axes) == 1 else flat(x).argmax(-1),
        "hardmax": hardmax,
        "sum": lambda x: x.sum(axes),
        "mean": lambda x: x.mean(axes),
        "max": lambda x: x.amax(axes),
        "softmax": softmax,
        "logsumexp": lambda x: torch.logsumexp(x, axes),
        "variance": lambda x: x.var(axes, correction=0),
        "layernorm": layernorm,
        "l2": lambda x: torch.sqrt((x * x).sum(axes)),
        "several": lambda x: (x.sum(axes), x.amax(axes), x.mean(axes), torch.sqrt((x * x).sum(axes))),
        "dot": lambda x, b: (x * b).sum(axes),
    }
    return table[name]
