"""The transformer of ONNX Runtime's optimizer that changes the numbers of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dmlc.runtime.runnable import NotRunnable, RunFailed
from dmlc.targets.target import load_data
from dmlc.verifying.comparison import DIFFERENT, compare
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.subject import Subject

#: A transformer that runs at two levels has the level in its name (onnxruntime, graph_transformer_utils.cc).
_ENDS = ("", "L1", "L2")


def blamed_transformer(subject: Subject, feeds: Feeds, outputs: Iterable[str]) -> str:
    """The name of the transformer without which these outputs are those of no optimization; empty if there is none."""
    wanted = set(outputs)

    def is_right(without: Sequence[str]) -> bool:
        left_out = [name + end for name in without for end in _ENDS]
        found: dict[str, Any] = subject.run_optimized(feeds, left_out) or {}
        return all(each.status != DIFFERENT for each in compare(plain, found).values() if each.name in wanted)

    rows = load_data("ort_optimizer")["transformers"]
    names = list(dict.fromkeys(row["pass"] for row in rows if row["level"]))
    try:
        plain = subject.run(feeds)
        if not is_right(names):
            return ""
        while len(names) > 1:
            half = names[: len(names) // 2]
            names = half if is_right(half) else names[len(half) :]
        return str(names[0]) if is_right(names) else ""  # two of them may do it together
    except (RunFailed, NotRunnable):
        return ""
