"""The structured model of a seed: grown, with parts moved into bodies, then renamed and declared otherwise."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from onnx import ModelProto

from tools.fuzz.onnx_models import Grower, MisfitError
from tools.fuzz.onnx_patterns import PATTERNS
from tools.fuzz.onnx_recipes import OPERATORS
from tools.fuzz.structure_bodies import copied, outlined
from tools.fuzz.structure_grower import StructureGrower, StructureModel
from tools.fuzz.structure_names import CHANGES, undeclare_bodies
from tools.fuzz.structure_recipes import STRUCTURES
from tools.model_checks import loads

#: Weight of the recipes of structure, as a part of all.
_STRUCTURE_PART = 0.5


def _recipes(rng: random.Random) -> list[tuple[int, Callable[[Grower], object]]]:
    """All recipes, or some: a model of few kinds reaches further into each."""
    plain = [*OPERATORS, *PATTERNS]
    plain = rng.sample(plain, rng.choice((6, 12, len(plain))))
    structures = rng.sample(STRUCTURES, rng.choice((3, 6, len(STRUCTURES))))
    scale = sum(w for w, _ in plain) / sum(w for w, _ in structures) * _STRUCTURE_PART / (1 - _STRUCTURE_PART)
    drawn: list[tuple[int, Callable[[Any], object]]] = [(10 * w, r) for w, r in plain]
    return drawn + [(max(1, round(10 * w * scale)), r) for w, r in structures]


def generate(seed: int) -> StructureModel:
    """The model of that seed: the first that ONNX Runtime loads, with every change that leaves it so."""
    for attempt in range(60):
        rng = random.Random(f"structure {seed}/{attempt}")
        try:
            model = StructureGrower(f"{seed}/{attempt}").grown(_recipes(rng))
        except MisfitError:
            continue
        if loads(model):
            return _changed(model, rng)
    raise AssertionError(f"seed {seed} yields no model that loads")


def _changed(model: ModelProto, rng: random.Random) -> StructureModel:
    traits = []
    for _ in range(rng.choice((0, 1, 1, 2, 3, 4))):
        candidate, way = outlined(model, rng)
        if way and loads(candidate):
            model = candidate
            traits.append(way)
    for part, change in CHANGES:
        if rng.random() < part:
            candidate = copied(model)
            change(candidate, rng)
            if candidate != model and loads(candidate):
                model = candidate
                traits.append(change.__name__)
    if {tensor.name for tensor in model.graph.initializer} & {info.name for info in model.graph.input}:
        candidate = copied(model)
        undeclare_bodies(candidate)
        model = candidate if loads(candidate) else model
    external = rng.random() < 0.06 and bool(model.graph.initializer)
    return StructureModel(model, external, (*traits, *(["external"] if external else [])))
