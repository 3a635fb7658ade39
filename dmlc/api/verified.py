"""ONNX models that are verified as they were written, before they get their name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dmlc.ir.plain_file import NotPlain
from dmlc.runtime import files
from dmlc.workers import SESSIONS

if TYPE_CHECKING:
    from dmlc.api.program import Program
    from dmlc.runtime.weights import Placement
    from dmlc.verifying import Verdict


def save_verified(
    program: Program,
    path: Path,
    *,
    inputs: int,
    seed: int = 0,
    weights: Placement | None = None,
    first: Callable[[], None] = lambda: None,
) -> Verdict:
    """Write the ONNX model of a program beside ``path``, verify that file in a new process, and rename it to ``path``
    if the answer is ``same``; else nothing is written.

    ``first`` writes what must be there before the model is. A model whose weights go to a file of their own, and one
    for a device or a pipe, is verified before it is written. Raises what ``Program.save`` and ``Program.verify`` raise.
    """
    from dmlc.runtime.weights import is_one_file, write_model

    files.spare_weights(program.source_graph, path)
    artifact = program.loadable()
    beside = files.beside_of(path, "verify")
    try:
        if not is_one_file(artifact.payload, path, artifact.folder, weights):
            verdict = program.verify(inputs, seed=seed)
            if verdict.ok:
                first()
                program.save(path, kind="onnx", weights=weights)
            return verdict
        write_model(artifact.payload, beside, source=artifact.folder, weights=weights, final=path)
        SESSIONS.stop()
        verdict = program.verify(inputs, seed=seed, written=beside)
        if verdict.ok:
            first()
            files.keep_mode(path, beside)
            beside.replace(path)
        return verdict
    except (OSError, NotPlain) as error:
        raise files.cannot("write", path, error) from None
    finally:
        files.remove([beside])
