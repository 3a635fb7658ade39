"""The sources: the examples, what once failed, random programs and models. All are files of one folder, so that
every process, whatever its Python, reads the same bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

from onnx import parser

from tools import ROOT
from tools.fuzz import onnx_models
from tools.fuzz import programs as random_programs
from tools.fuzz.onnx_patterns import PATTERNS

#: Suffixes of other files in a folder of sources: arrays that programs load, weights in files.
_BESIDE = {".npy", ".npz", ".data", ".bin"}
SUFFIXES = {".dml", ".onnx", ".py"}


def write_corpus(folder: Path, *, programs: int, models: int, patterns: int) -> list[str]:
    """Write the examples, the regressions, so many random programs and models, and so many models of each written-out
    pattern; the names of the sources. A ``.py`` file is a builder's, with a function that gives its graph."""
    _copy(ROOT / "examples", folder / "examples")
    _write(folder / "programs/many_names.dml", _many_names().encode())
    for path in sorted((ROOT / "tests" / "regressions").iterdir()):
        if path.suffix == ".onnxtxt":
            lines = path.read_text(encoding="utf-8").splitlines()
            model = parser.parse_model("\n".join(line for line in lines if line[:1] != "#"))
            _write(folder / f"once/{path.stem}.onnx", model.SerializeToString())
        elif path.suffix == ".dml":
            _write(folder / f"once/{path.name}", path.read_bytes())
    for seed in range(programs):
        _write(folder / f"programs/{seed}.dml", random_programs.generate(seed).text().encode("utf-8"))
    for seed in range(models):
        _write(folder / f"models/{seed}.onnx", onnx_models.generate(seed).SerializeToString())
    for _, pattern in PATTERNS:
        for seed in range(patterns):
            name = f"patterns/{pattern.__name__.strip('_')}_{seed}.onnx"
            _write(folder / name, onnx_models.of_pattern(pattern, seed).SerializeToString())
    return sources(folder)


def add_folder(folder: Path, into: Path) -> list[str]:
    """Copy the sources of another folder, and what they load; the names of the sources."""
    _copy(folder, into / folder.name)
    return sources(into)


def with_crlf(folder: Path, into: Path) -> list[str]:
    """Copy the corpus with the line ends of Windows in its programs; their names."""
    shutil.copytree(folder, into)
    found = sorted(into.rglob("*.dml"))
    for path in found:
        path.write_bytes(path.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n"))
    return [path.relative_to(into).as_posix() for path in found]


def sources(folder: Path) -> list[str]:
    """The names of what can be compiled, in order. Of Python files those that make a graph: ``model.py``."""
    found = (path for path in folder.rglob("*") if path.suffix in SUFFIXES)
    return sorted(p.relative_to(folder).as_posix() for p in found if p.suffix != ".py" or p.name == "model.py")


def _many_names() -> str:
    """So many dims, inputs and results that a set of any of them has another order in the next process."""
    dims = [f"{word}{number}" for number in range(3) for word in ("rows", "columns", "batch", "depth")]
    inputs = [f"in_{name}" for name in dims]
    lines = [f"dim {name} in 2..{100 + place}" for place, name in enumerate(dims)]
    lines += ["model many_names(", *[f"    {x}: f32[{d}, 1, 4]," for x, d in zip(inputs, dims, strict=True)], ") -> ("]
    lines += [f"    out_{name}," for name in dims] + [") {"]
    for place, (name, x) in enumerate(zip(dims, inputs, strict=True)):
        index = f"argmax({inputs[place - 1]}, axes=[0, 2]) as f32"
        lines.append(f"    out_{name} = reduce_sum(reduce_sum({x} * 2, axes=[0]), axes=[2]) + {index}")
    return "\n".join([*lines, f"    return {', '.join(f'out_{name}' for name in dims)}", "}", ""])


def _copy(folder: Path, into: Path) -> None:
    for path in _files(folder):
        if path.suffix in _BESIDE | SUFFIXES:
            _write(into / path.relative_to(folder), path.read_bytes())


def _files(folder: Path) -> Iterable[Path]:
    return (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
