"""Each transformer that the compiler names has a row in the table of ONNX Runtime's optimizer."""

from __future__ import annotations

import re
from pathlib import Path

import dmlc.placement.optimizer as optimizer
from dmlc.targets.target import load_data

ROWS = load_data("ort_optimizer")["transformers"]


def test_each_transformer_that_the_compiler_names_has_a_row_that_is_kept_apart() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in Path(optimizer.__file__).parent.glob("*.py"))
    named = set(re.findall(r'LookAlike\("(\w+)"', text)) | {
        "LayerNormFusion",
        "SimplifiedLayerNormFusion",
    }
    kept = {row["pass"] for row in ROWS if row.get("kept_apart")}
    assert named <= kept
    assert len(named) >= 12
