"""Argmax and hardmax over any axes, as ONNX models on ONNX Runtime's CPU provider."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import dmlc
from benchmarks.measure import Deferred, Runner, contest, copying, reading
from benchmarks.operations import Operation, naive, random, written
from benchmarks.peers import runners
from benchmarks.records import OURS, Case, Settings
from benchmarks.sessions import SessionRun
from benchmarks.suites.selection_forms import argmax_forms, argmax_onehot, native_hardmax

Shape = tuple[int, ...]

_IMAGE, _FEATURES, _CUBE, _SQUARE = (64, 3, 224, 224), (8, 64, 128, 128), (32, 1024, 1024), (4096, 4096)
_ATTENTION, _ROW = (16, 12, 197, 197), (1, 1000)

#: The large cases that the bars are about.
LARGE: tuple[tuple[Shape, Shape], ...] = (
    *((_IMAGE, axes) for axes in ((0, 2), (1, 3), (2, 3), (0, 1, 2, 3), (0, 2, 3), (1, 2, 3))),
    *((_FEATURES, axes) for axes in ((0, 2), (1, 3), (2, 3), (0, 3), (0, 1, 2, 3))),
    *((_CUBE, axes) for axes in ((0, 2), (1, 2), (0, 1), (1,), (0, 1, 2))),
    *((_SQUARE, axes) for axes in ((0,), (1,), (0, 1))),
    *((_ATTENTION, axes) for axes in ((0, 2), (1, 3), (2, 3), (0, 3))),
)
#: Classes of a segmentation or a detection: a short axis with much behind it.
CLASSES: tuple[tuple[Shape, Shape], ...] = tuple(
    [
        (s, (1,))
        for s in ((2, 21, 512, 512), (1, 19, 512, 1024), (4, 150, 128, 128), _FEATURES, (1, 80, 8400), (8, 2, 256, 256))
    ]
)
#: Others that must not be slower than the best form.
SMALL: tuple[tuple[Shape, Shape], ...] = (
    (_IMAGE, (1,)),
    (_ROW, (1,)),
    (_ROW, (0, 1)),
    ((16, 64), (1,)),
    ((256, 128), (1,)),
    ((16, 1024), (1,)),
    ((64, 16), (0,)),
    ((256, 256), (0,)),
    ((1, 4, 8, 8), (1,)),
    ((2, 8, 4, 4), (1, 3)),
)
HARDMAX: tuple[tuple[Shape, Shape], ...] = (
    *((_IMAGE, axes) for axes in ((0, 2), (1, 3), (2, 3), (0, 1, 2, 3), (1,))),
    *((_FEATURES, axes) for axes in ((0, 2), (1, 3), (2, 3))),
    *((_SQUARE, axes) for axes in ((1,), (0,))),
    (_ROW, (1,)),
    (_ATTENTION, (3,)),
    (_ATTENTION, (0, 2)),
)
_QUICK: tuple[tuple[Shape, Shape], ...] = (((4, 6, 8), (0, 2)), ((4, 64), (1,)))


def label(shape: Shape, axes: Shape) -> str:
    return f"{'x'.join(map(str, shape))} over {','.join(map(str, axes))}"


def argmax(settings: Settings) -> Iterator[Case]:
    cases = [(s, a, ("large",)) for s, a in LARGE] + [(s, a, ("small",)) for s, a in (*SMALL, *CLASSES)]
    for shape, axes, tags in [(*c, ("large",)) for c in _QUICK] if settings.quick else cases:
        operation, x = Operation("argmax", axes), random(shape)
        rivals: dict[str, Runner | Deferred] = {OURS: Deferred(_ours, operation, x, settings)}
        for name, model in argmax_forms(shape, axes).items():
            rivals[name] = Deferred(SessionRun, model, {"x": x}, settings.threads)
        rivals.update(runners(operation, [x], settings))
        case = Case("argmax", label(shape, axes), settings.threads, tags)
        yield contest(case, settings, rivals, naive(operation, [x]), bound=reading(x))


def hardmax(settings: Settings) -> Iterator[Case]:
    for shape, axes in _QUICK if settings.quick else HARDMAX:
        operation, x = Operation("hardmax", axes), random(shape)
        rivals: dict[str, Runner | Deferred] = {
            OURS: Deferred(_ours, operation, x, settings),
            "hardmax": Deferred(SessionRun, native_hardmax(shape, axes), {"x": x}, settings.threads),
            "argmax+onehot": Deferred(SessionRun, argmax_onehot(shape, axes), {"x": x}, settings.threads),
            **runners(operation, [x], settings),
        }
        moved = axes != tuple(range(len(shape) - len(axes), len(shape)))
        tags = ("large",) if settings.quick or x.size > 10**5 else ("small",)
        case = Case("hardmax", label(shape, axes), settings.threads, (*tags, *(["transposed"] if moved else [])))
        yield contest(case, settings, rivals, naive(operation, [x]), bound=copying(x))


def _ours(operation: Operation, x: np.ndarray, settings: Settings) -> SessionRun:
    model = dmlc.compile(written(operation, [x.shape]), target="cpu").to_onnx()
    return SessionRun(model, {"x": x}, settings.threads)
