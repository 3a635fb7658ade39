"""Nodes that other optimizers leave of models, and what ``dmlc verify --locate`` says of their results.

``python -m tools.peer_verdicts [MODEL.onnx ...] [--peers onnxsim,onnxslim,onnxscript] [--inputs 8]`` prints a table of
the page docs/explanation/peer_models.md: a row for each model with nodes, and a cell for each installed peer and for
dmlc with target ``onnx``; then a row for each model that is not ``same``, with the first tensor that differs. Without
models it takes the fixtures. Nodes count without constants and copies.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import onnx

from benchmarks.peers import REWRITERS, installed
from tools.after_peers import rewrite
from tools.fixture_folder import PARTS, fixtures
from tools.model_checks import node_count

#: Seconds that one comparison gets.
_LIMIT = 600
_DMLC = "dmlc"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.peer_verdicts", description=__doc__)
    parser.add_argument("models", nargs="*", type=Path, help="files; the fixtures without any")
    parser.add_argument("--peers", default=",".join(REWRITERS), help="of %(default)s, with commas")
    parser.add_argument("--inputs", type=int, default=8, help="inputs of each comparison; %(default)s")
    args = parser.parse_args()
    versions, missing = installed(args.peers.split(","))
    print("\n".join(missing), file=sys.stderr)
    paths = args.models or [path for part in PARTS for path in fixtures(part).values() if part != "patterns"]
    tools = [*versions, _DMLC]
    print("| model | nodes | " + " | ".join(f"{name} {versions.get(name, '')}".strip() for name in tools) + " |")
    print("| --- " * (len(tools) + 2) + "|")
    answers: Counter[tuple[str, str]] = Counter()
    parted = []
    for path in paths:
        cells = []
        for tool in tools:
            nodes, answer, place = _judged(path, tool, args.inputs)
            answers[tool, answer] += 1
            cells.append(f"{nodes} {answer}".strip())
            if place:
                parted.append(f"| {path.stem} | {tool} | {answer} | {place} |")
        print(f"| {path.stem} | {node_count(onnx.load(path).graph)} | " + " | ".join(cells) + " |", flush=True)
    print("\n| model | tool | verdict | first tensor that differs |\n| --- | --- | --- | --- |")
    print("\n".join(parted))
    print("\n".join(f"{tool}: {count} {answer}" for (tool, answer), count in sorted(answers.items())), file=sys.stderr)
    return 0


def _judged(path: Path, tool: str, inputs: int) -> tuple[str, str, str]:
    """The nodes that a tool leaves, the verdict on its model, and where it parts; or why there is no model."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        if tool == _DMLC:
            _command("compile", path, "--target", "onnx", "-o", file, "-q")
        elif failure := rewrite(path, tool, file):
            return "", failure, ""
        if not file.exists():
            return "", "refused", ""
        nodes = str(node_count(onnx.load(file).graph))
        said = _command("verify", path, file, "--locate", "--format", "json", "--inputs", str(inputs))
    try:
        answer = json.loads(said)
    except ValueError:
        return nodes, "not compared", ""
    return nodes, answer["verdict"], "" if answer["verdict"] == "same" else _place(answer)


def _command(*words: Any) -> str:
    """The output of a command of dmlc; nothing where it takes too long."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dmlc", *map(str, words)], capture_output=True, text=True, timeout=_LIMIT
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _place(answer: dict[str, Any]) -> str:
    """The operator that makes the first tensor that differs and how far it is; the reason where there is none."""
    located = answer["located"]
    if not located:
        return str(answer["reason"])
    node = located["result_node"] or located["node"] or {}
    value = located["value"]
    worst = value["worst"] or {}
    apart = f"{worst['a']} became {worst['b']}" if worst else value["what"] or answer["reason"]
    return f"{node.get('operator', '')} `{value['a']}`: {apart}".strip()


if __name__ == "__main__":
    sys.exit(main())
