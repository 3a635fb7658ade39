"""The standard library: one ``.dml`` file of the package for each block, named as the block."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from dmlc.ops.pages import StandardBlock

_FOLDER = Path(__file__).parents[1] / "std"


@cache
def std_blocks() -> tuple[str, ...]:
    """The names of the blocks."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.dml")))


def std_path(name: str) -> Path:
    """The file of a block."""
    return _FOLDER / f"{name}.dml"


def std_page(name: str) -> StandardBlock:
    """The page of a block, read from its file."""
    lines = std_path(name).read_text(encoding="utf-8").splitlines()
    comment = [line.removeprefix("#").strip() for line in lines if line.startswith("#")]
    head = next(line for line in lines if line.startswith(f"def {name}("))
    return StandardBlock(name, head.removeprefix("def ").removesuffix(" {"), " ".join(comment))
