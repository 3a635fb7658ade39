"""One process: compile every source that stdin names, write it in every form, and print the digest of every file.

``python worker.py [--keep FOLDER]``; stdin is JSON: ``root`` as it is spelled here, ``names`` of sources in
it, ``targets``, and ``shake``, a seed or null. What a command says of its files, where they lie and how long it took
are not part of its output.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib.util
import io
import json
import os
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dmlc
from dmlc.cli.main import main as command
from dmlc.ir import dim_names
from dmlc.targets import load_target

#: Fields that tell of the run: names of files as they were given, command lines with them, and times.
_OF_THE_RUN = {"source", "output", "ledger", "command", "seconds", "passes"}
#: The size that a free dim is fixed to where sizes are wanted.
_SIZE = 8


def digests(root: str, names: list[str], targets: list[str], shake: int | None, keep: Path | None) -> dict[str, str]:
    """A digest for each source, target and file."""
    out = {}
    for number, name in enumerate(names):
        held = None if shake is None else _shaken(random.Random(f"{shake} {number}"))  # noqa: F841 - holds memory
        for label, data in outputs(os.path.join(root, name), targets):  # noqa: PTH118 - as it is spelled
            out[f"{name} {label}"] = hashlib.sha256(data).hexdigest()[:16]
            if keep is not None:
                path = keep / name / label.replace(" ", "/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
    return out


def _shaken(rng: random.Random) -> list[bytes]:
    """Leave holes in the memory, so that what comes lies in another order: nodes and values are hashed by where they
    lie, and so are they ordered in sets. What is returned is what lies between the holes."""
    blocks = [bytes(rng.randrange(1, 480)) for _ in range(20000)]
    rng.shuffle(blocks)
    del blocks[: len(blocks) // 2]
    return blocks


def outputs(path: str, targets: list[str]) -> Iterator[tuple[str, bytes]]:
    """Everything that is made of a source, by the target and the file's name; the other forms for the first target."""
    source = _built(path) if path.endswith(".py") else path
    for target in targets:
        if isinstance(source, str):
            with tempfile.TemporaryDirectory() as folder:
                yield from _said(
                    target, "compile", path, "-o", f"{folder}/out.onnx", "--ledger", f"{folder}/ledger.json"
                )
                yield from _files(target, Path(folder))
            yield from _said(target, "explain", path)
        if target == targets[0] or not isinstance(source, str):
            yield from _saved(target, source)


def _saved(target: str, source: Any) -> Iterator[tuple[str, bytes]]:
    """Files that a program saves: ONNX, NumPy code in both styles, the language, DxDispatch's of fixed sizes."""
    goal = load_target(target)
    try:
        program = dmlc.compile(source, target=goal)
        bound = dmlc.compile(source, target=goal, bind=dict.fromkeys(_dims(program), _SIZE))
    except dmlc.DmlcError as error:
        yield f"{target} refused", _refusal(error)
        return
    with tempfile.TemporaryDirectory() as folder:
        forms: list[tuple[dmlc.Program, str, dict[str, Any]]] = [
            (program, "saved.onnx", {}),
            (program, "saved.dml", {}),
        ]
        forms += [(program, f"{style}.py", {"style": style}) for style in ("fast", "plain")]
        for made, file, options in (*forms, (bound, "saved.dxdispatch.json", {})):
            try:
                made.save(Path(folder) / file, **options)
            except dmlc.DmlcError as error:
                yield f"{target} {file} refused", _refusal(error)
        yield from _files(target, Path(folder))
    remarks = [f"{remark.rule} {remark.node} {remark.reason()}" for remark in program.remarks]
    advice = [f"{d.code.id} {d.severity} {d.message}" for d in program.diagnostics]  # without the path, as it was given
    yield f"{target} said", json.dumps([program.ledger_document(), remarks, advice]).encode()


def _refusal(error: dmlc.DmlcError) -> bytes:
    """Without the path, which is as it was given."""
    return "\n".join(f"{d.code.id} {d.message}" for d in error.diagnostics).encode()


def _said(target: str, verb: str, path: str, *options: str) -> Iterator[tuple[str, bytes]]:
    """Run a command; what it says as JSON."""
    stdout, stderr = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
        code = command([verb, path, "--target", target, "--format", "json", *options])
    text = json.dumps([code, _plain(json.loads(stdout.getvalue()))], indent=1)
    yield f"{target} {verb} said", text.replace(path, "SOURCE").encode()


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items() if key not in _OF_THE_RUN}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _dims(program: dmlc.Program) -> list[str]:
    return sorted({name for _, type in program.signature.inputs for size in type.shape for name in dim_names(size)})


def _built(path: str) -> dmlc.Graph:
    """The graph that a function of a Python file gives."""
    spec = importlib.util.spec_from_file_location("model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    graph: dmlc.Graph
    (graph,) = [make() for name, make in vars(module).items() if name in _GRAPHS]
    return graph


#: The functions that give a graph, by their names.
_GRAPHS = {"detection_head"}


def _files(target: str, folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield f"{target} {path.relative_to(folder).as_posix()}", path.read_bytes()


if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--keep", type=Path)
    asked = json.load(sys.stdin)
    json.dump(digests(**asked, keep=options.parse_args().keep), sys.stdout)
