"""The bars: each a record, with the figure that a run gives for it.

A bar holds for one number of threads; a figure is None where the suite, or a peer that it needs, was not run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from benchmarks.records import OURS, Case
from benchmarks.suites.selection_forms import SINGLE
from benchmarks.suites.webgpu import sums

Measure = Callable[[Sequence[Case]], "float | None"]
Direction = Literal["at least", "at most"]


@dataclass(frozen=True)
class Bar:
    """``suite`` is the one that measures it. Ratios are times of others over ours where ``at least`` is wanted, and of
    ours over others where ``at most`` is."""

    id: str
    text: str
    suite: str
    direction: Direction
    threshold: float
    measure: Measure
    unit: str = "x"

    def figure(self, cases: Sequence[Case]) -> float | None:
        return self.measure([c for c in cases if c.suite == self.suite])

    def reached(self, figure: float) -> bool:
        return figure >= self.threshold if self.direction == "at least" else figure <= self.threshold


def mean(numbers: Iterable[float | None]) -> float | None:
    """The geometric mean of what there is."""
    found = [n for n in numbers if n is not None]
    return math.exp(sum(map(math.log, found)) / len(found)) if found else None


def least(numbers: Iterable[float | None]) -> float | None:
    return min((n for n in numbers if n is not None), default=None)


def most(numbers: Iterable[float | None]) -> float | None:
    return max((n for n in numbers if n is not None), default=None)


def tagged(cases: Sequence[Case], tag: str) -> list[Case]:
    return [c for c in cases if tag in c.tags]


def _behind(case: Case, others: Iterable[str]) -> float | None:
    """Our time over that of the best of others."""
    ratio = case.best(others)
    return None if ratio is None else 1 / ratio


def _gain(other: str, tag: str | None = None, of: Callable[[Iterable[float | None]], float | None] = mean) -> Measure:
    return lambda cases: of(c.ratio(other) for c in (cases if tag is None else tagged(cases, tag)))


def _bound(tag: str, name: str = "") -> Measure:
    return lambda cases: most(c.over_bound(OURS) for c in tagged(cases, tag) if c.name.startswith(name))


def _figure(key: str, tag: str) -> Measure:
    return lambda cases: most(c.figures.get(key) for c in tagged(cases, tag))


def _selections(cases: Sequence[Case]) -> list[Case]:
    return [c for c in cases if c.name.startswith(("argmax", "hardmax"))]


def _seconds(tag: str) -> Measure:
    return lambda cases: most(c.seconds.get(OURS) for c in tagged(cases, tag))


def _right(cases: Sequence[Case]) -> float | None:
    """1 where our results are those that were expected."""
    return least(float(OURS in c.seconds) for c in tagged(cases, "argmax+softmax"))


def _exponent(cases: Sequence[Case]) -> float | None:
    return most(c.figures.get("exponent") for c in cases)


_ONNX: tuple[Bar, ...] = (
    Bar("argmax-naive", "argmax over Transpose+Reshape+ArgMax, geometric mean of 23 large cases", "argmax",
        "at least", 5, _gain("transpose+argmax", "large")),
    Bar("argmax-single", "argmax over the best single-operator form, geometric mean of 23 large cases", "argmax",
        "at least", 2.5, lambda cases: mean(c.best(SINGLE) for c in tagged(cases, "large"))),
    Bar("argmax-worst", "argmax without times over ArgMax, transposed if axes are not neighbours, least", "argmax",
        "at least", 0.95, lambda cases: least(c.ratio("argmax") or c.ratio("transpose+argmax") for c in cases)),
    Bar("hardmax-onehot", "hardmax over ArgMax+OneHot, geometric mean", "hardmax",
        "at least", 3.5, _gain("argmax+onehot")),
    Bar("hardmax-native", "hardmax over native Hardmax with transposes, geometric mean", "hardmax",
        "at least", 2, _gain("hardmax", "transposed")),
    Bar("hardmax-worst", "hardmax against native Hardmax, worst case", "hardmax",
        "at most", 1.05, lambda cases: most(_behind(c, ["hardmax"]) for c in cases)),
    Bar("reduce-worst", "sum, mean, max without times against one node, worst case", "reduce",
        "at most", 1.05, lambda cases: most(_behind(c, ["one node"]) for c in cases)),
    Bar("reduce-onnxsim", "sum, mean, max over onnxsim's output on {0,2} and {1,3}, least", "reduce",
        "at least", 3, _gain("onnxsim", "apart", least)),
    Bar("reduce-error", "error of sums and means over np.sum's or one unit in the last place, worst case", "reduce",
        "at most", 1, lambda cases: most(c.figures.get("error over np.sum") for c in cases)),
    Bar("softmax-worst", "softmax without times on any axis against Softmax, worst case", "softmax",
        "at most", 1.05, lambda cases: most(_behind(c, ["softmax"]) for c in tagged(cases, "softmax"))),
    Bar("logsumexp", "log-sum-exp over ReduceLogSumExp, least", "softmax",
        "at least", 2.5, _gain("ReduceLogSumExp", "logsumexp", least)),
    Bar("argmax-max", "argmax and max of one input, shared", "patterns",
        "at least", 3.4, _gain("onnxruntime", "argmax+max", least)),
    Bar("argmax-softmax", "argmax of softmax gives the same indices (1: it does)", "patterns",
        "at least", 1, _right, ""),
    Bar("patterns", "68 patterns over ONNX Runtime alone, geometric mean", "patterns",
        "at least", 1.8, _gain("onnxruntime")),
    Bar("patterns-worst", "68 patterns over ONNX Runtime alone, least", "patterns",
        "at least", 0.97, _gain("onnxruntime", None, least)),
    Bar("argmax-torch", "argmax over torch.compile, geometric mean", "argmax",
        "at least", 2, _gain("torch.compile", "large")),
    Bar("hardmax-torch", "hardmax over torch.compile, geometric mean", "hardmax",
        "at least", 2, _gain("torch.compile", "large")),
    Bar("argmax-jax", "argmax over JAX jit, geometric mean", "argmax", "at least", 4, _gain("jax", "large")),
    Bar("hardmax-jax", "hardmax over JAX jit, geometric mean", "hardmax", "at least", 4, _gain("jax", "large")),
    Bar("reduce-torch", "sum and max over several axes over torch.compile, geometric mean", "reduce",
        "at least", 1.3,
        lambda cases: mean(c.ratio("torch.compile") for c in cases if not c.name.startswith("mean"))),
)  # fmt: skip

_NUMPY: tuple[Bar, ...] = (
    Bar("numpy-naive", "argmax and hardmax over the naive expression, geometric mean", "numpy",
        "at least", 2.5, lambda cases: _gain("naive")(_selections(cases))),
    Bar("numpy-torch", "argmax and hardmax over torch.compile, geometric mean", "numpy",
        "at least", 2, lambda cases: _gain("torch.compile")(_selections(cases))),
    Bar("numpy-contiguous", "argmax on contiguous axes over the read bound, worst case", "numpy",
        "at most", 1.1, _bound("contiguous")),
    Bar("numpy-strided", "argmax on strided axes over the read bound, worst case", "numpy",
        "at most", 4.5, _bound("strided")),
    Bar("numpy-chains", "elementwise and reduce chains over naive, geometric mean", "numpy",
        "at least", 2, _gain("naive", "chain")),
    Bar("numpy-vecdot", "l2 and dot over the read bound, worst case", "numpy", "at most", 1.35, _bound("vecdot")),
    Bar("numpy-top-k", "top-k over a stable argsort, rows of 4,096 and more, least", "numpy",
        "at least", 9, _gain("stable argsort", "long rows", least)),
    Bar("numpy-top-k-ort", "top-k against ONNX Runtime's TopK, worst case", "numpy",
        "at most", 3, lambda cases: most(_behind(c, ["TopK"]) for c in tagged(cases, "top_k"))),
)  # fmt: skip

_COMPILER: tuple[Bar, ...] = (
    Bar("compile-10k", "load, fuse and emit 10,000 nodes, the slower of chain and dag", "compile",
        "at most", 0.55, _seconds("10000 nodes"), " s"),
    Bar("compile-100k", "load, fuse and emit 100,000 nodes, the slower of chain and dag", "compile",
        "at most", 8, _seconds("100000 nodes"), " s"),
    Bar("compile-onnxsim", "100,000 nodes against onnxsim, the slower of chain and dag", "compile",
        "at most", 0.65, lambda cases: most(_behind(c, ["onnxsim"]) for c in tagged(cases, "100000 nodes"))),
    Bar("compile-growth", "exponent of time over nodes, 1,000 to 100,000", "compile", "at most", 1.1, _exponent, ""),
    Bar("compile-memory", "peak memory at 100,000 nodes", "compile",
        "at most", 350, _figure(f"peak MB {OURS}", "100000 nodes"), " MB"),
    Bar("compile-external", "a model with 2 GB of external data against one with 4 KB, seconds", "compile",
        "at most", 1.1, _figure("slower", "external")),
    Bar("parse", "lines a second with places, 10,000 lines", "parse",
        "at least", 20_000, lambda cases: least(c.figures.get("lines/s") for c in tagged(cases, "10000 lines")), ""),
    Bar("parse-flat", "a line of 100,000 over one of 1,000", "parse",
        "at most", 1.15, _figure("line over first", "100000 lines")),
    Bar("startup", "dmlc --version against bare Python (35 ms where that takes 10)", "startup",
        "at most", 3.5, lambda cases: most(_behind(c, ["python"]) for c in cases)),
    Bar("startup-compile", "compiling ten lines against import lark, numpy, onnx", "startup",
        "at most", 1.25, lambda cases: most(_behind(c, ["imports"]) for c in cases)),
    Bar("builder", "10,000 checked nodes", "builder",
        "at most", 0.5, lambda cases: most(c.seconds[OURS] for c in cases if c.figures.get("nodes") == 10_000), " s"),
)  # fmt: skip


def _device(name: str) -> Measure:
    return lambda cases: sums(cases, "model", OURS)[name] if cases else None


_WEBGPU: tuple[Bar, ...] = (
    Bar("webgpu-dispatches", "dispatches of 70 models", "webgpu", "at most", 3550, _device("dispatches"), ""),
    Bar("webgpu-cpu", "nodes of 70 models on the CPU", "webgpu", "at most", 20, _device("nodes on the CPU"), ""),
    Bar("webgpu-copies", "copies of 70 models", "webgpu", "at most", 40, _device("copies"), ""),
    Bar("webgpu-whole", "models wholly on the GPU, of 70", "webgpu", "at least", 57, _device("wholly on the GPU"), ""),
)  # fmt: skip

BARS: tuple[Bar, ...] = (*_ONNX, *_NUMPY, *_COMPILER, *_WEBGPU)
