"""Draw docs/digits.svg: what examples/03_language reads, from a run of the example itself.

Usage: python docs/picture.py [OUT.svg]
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import dmlc

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "03_language"
COLUMNS, CELL, GAP = 15, 40, 8
SHOWN_RIGHT = 20


def scan(image: np.ndarray, x: int, y: int) -> str:
    """One 8 x 8 scan as SVG paths, one for each of its 16 ink levels."""
    size = CELL / 8
    out = []
    for level in range(1, 17):
        squares = "".join(
            f"M{x + column * size:g} {y + row * size:g}h{size:g}v{size:g}h-{size:g}z"
            for row, column in np.argwhere(image == level)
        )
        if squares:
            out.append(f'<path d="{squares}" fill-opacity="{level / 16:g}"/>')
    return "".join(out)


def main(out: Path) -> None:
    """Run the example, then draw the first scans it reads right and all that it reads wrong."""
    with np.load(EXAMPLE / "digits.npz") as data:
        images, truth = data["scans"], data["truth"]
    results = dmlc.compile(EXAMPLE / "model.dml").run({"images": images, "truth": truth})
    digit, accuracy = results["digit"], float(results["accuracy"])
    wrong = np.flatnonzero(digit != truth)
    shown = [*np.flatnonzero(digit == truth)[:SHOWN_RIGHT], *wrong]
    rows = -(-len(shown) // COLUMNS)
    width, height = COLUMNS * (CELL + GAP) + GAP, rows * (CELL + 24) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        'font-family="sans-serif" font-size="13" text-anchor="middle">',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
        f'<text x="{width / 2:g}" y="20">{len(images) - len(wrong)} of {len(images)} scans read right '
        f"({accuracy:.2%}); the {len(wrong)} others in red, with what they are</text>",
    ]
    for i, where in enumerate(shown):
        x, y = GAP + i % COLUMNS * (CELL + GAP), 30 + i // COLUMNS * (CELL + 24)
        missed = digit[where] != truth[where]
        text = f"{digit[where]} ({truth[where]})" if missed else str(digit[where])
        parts.append(scan(images[where], x, y))
        parts.append(
            f'<text x="{x + CELL / 2:g}" y="{y + CELL + 14}" fill="{"#b00" if missed else "#000"}">{text}</text>'
        )
    out.write_text("\n".join([*parts, "</svg>"]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "digits.svg")
