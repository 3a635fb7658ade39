"""The table of ``docs/optimizer.md``: the transformers of ONNX Runtime's own optimizer, as the package has them.

``python -m tools.optimizer_page --write`` writes it anew.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dmlc.targets.target import load_data
from tools.generated_files import write_or_compare

PAGE = Path(__file__).parents[1] / "docs" / "optimizer.md"
COMMAND = "python -m tools.optimizer_page --write"
_VERDICTS = {
    "right": "right",
    "rounding": "right up to rounding",
    "wrong": "**wrong numbers**",
    "fails": "**does not load or run**",
}


def page() -> str:
    """Return the page with its table as the data file has it."""
    text = PAGE.read_text(encoding="utf-8")
    head, marker, rest = text.partition("<!-- transformers: generated -->\n")
    _, end, tail = rest.partition("<!-- end of transformers -->")
    rows = [_row(row) for row in load_data("ort_optimizer")["transformers"]]
    lines = [
        "| transformer | level | providers | releases | takes, and makes | verdict | when | dmlc | source |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
        *rows,
    ]
    return head + marker + "".join(f"{line}\n" for line in lines) + end + tail


def _row(row: Mapping[str, Any]) -> str:
    answer = "kept apart" if row.get("kept_apart") else "not kept apart" if row["verdict"] in ("wrong", "fails") else ""
    first, last = row.get("from", ""), row.get("until", "")
    cells = (
        f"`{row['pass']}`",
        str(row["level"]),
        row["providers"],
        f"{first} to {last}" if last else f"{first} on" if first else "all",
        f"{row['takes']} Makes: {row['makes']}",
        _VERDICTS[row["verdict"]],
        row.get("when", ""),
        answer,
        re.sub(r"(issue|PR) #?(\d+)", r"\1 \2", row["source"]),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    sys.exit(write_or_compare("optimizer_page", __doc__, {PAGE: page()}))
