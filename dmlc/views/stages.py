"""The scenes of a program: as it was written, and as it was compiled."""

from __future__ import annotations

from dmlc import api
from dmlc.inference.model_facts import types_by_name
from dmlc.placement.report import placement
from dmlc.views.scene import Scene, scene_of


def source_scene(program: api.Program, plain: api.Program | None) -> Scene:
    """The scene of the imported model, or of ``plain``, the program without rewrites; else of the compiled program."""
    target = program.target
    if program.source_model is not None:
        types = types_by_name(program.source_graph)
        placed = None if target.provider is None else placement(program.source_model, target, types=types)
        return scene_of(program.source_model, placed)
    return compiled_scene(program if plain is None else plain)


def compiled_scene(program: api.Program) -> Scene:
    """The scene of the ONNX model that a program becomes. Raises ``DmlcError`` where it cannot be emitted."""
    placed = None if program.target.provider is None else program.placement()
    paths = {} if program.source_model is None else scene_of(program.source_model, None).paths
    return scene_of(api.emitted(program, "onnx").payload, placed, paths)
