"""Generated files are as the formatter leaves them and clean for the linter's defaults."""

from __future__ import annotations

import random
import shutil
import subprocess
import sysconfig
from pathlib import Path

import numpy as np
import pytest
from numpy_models import Model, source
from numpy_random import random_graph

from dmlc.ir import Graph

RUFF = shutil.which("ruff", path=sysconfig.get_path("scripts")) or shutil.which("ruff")

pytestmark = pytest.mark.skipif(RUFF is None, reason="ruff comes with the extra [dev]")


def ruff(*arguments: str | Path) -> None:
    assert RUFF is not None
    done = subprocess.run([RUFF, *map(str, arguments), "--isolated", "--no-cache"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def write(folder: Path, name: str, graph: Graph) -> list[str]:
    """Write the code of a graph in both styles; return the texts."""
    texts = [source(graph, "plain"), source(graph, "fast")]
    for style, text in zip(("plain", "fast"), texts, strict=True):
        (folder / f"{name}_{style}.py").write_text(text, encoding="utf-8")
    return texts


def clean(folder: Path) -> None:
    ruff("format", "--diff", "--line-length", "100", "--target-version", "py311", folder)
    # E741 and E743, defaults of older versions, are about names that read like digits; inputs and models keep theirs.
    ruff("check", "--extend-ignore", "E741,E743", "--target-version", "py311", folder)


def test_random_graphs(tmp_path: Path) -> None:
    for seed in range(80):
        graph, _ = random_graph(random.Random(seed).choice, steps=12)
        write(tmp_path, f"graph_{seed}", graph)
    clean(tmp_path)


def test_names_of_every_length(tmp_path: Path) -> None:
    """The place to split a statement depends on each column."""
    for length in [*range(1, 60), 70, 80, 90, 95, 100, 120]:
        name = ("n" * length)[:length]
        model = Model("m" * min(length, 60), **{f"d{name}": (2, 9)})
        x = model.input(f"x{name}", "f16", f"d{name}", f"e{name}", 6)
        y = model.input("y", "f16", f"d{name}", 1, 6)
        i = model.input(f"i{name}", "u32", 3)
        a = model.call("+", x, y, name=f"a{name}")
        b = model.call("reduce_mean", a, axes=[1, 2], name=f"b{name}")
        row = model.constant(np.arange(6, dtype=np.float16), "row")
        c = model.call("layer_norm", a, row, name=f"c{name}")
        d = model.call("matmul", x, model.call("transpose", c, perm=[0, 2, 1]), name=f"d{name}")
        e = model.call("argmax", a, axes=[0, 2], ties="last", name=f"e{name}")
        v, w = model.node("top_k", a, k=2, axis=2).results
        v.name, w.name = f"v{name}", f"w{name}"
        f = model.call("concat", a, a, c, model.call("neg", a), axis=2, name=f"f{name}")
        g = model.call("where", model.call("<", a, 2.0), a, model.call("exp", c), name=f"g{name}")
        h = model.call("gather", x, i, axis=2, name=f"h{name}")
        k = model.call("slice", f, starts=[1, 2], ends=[4, -1], axes=[2, 0], name=f"k{name}")
        r = model.call("reshape", a, shape=[x.shape[0] * 6, x.shape[1]], name=f"r{name}")
        t = model.call("tanh", x, name=f"t{name}")
        outputs = dict(zip("bcdevwghkrt", (b, c, d, e, v, w, g, h, k, r, t), strict=True))
        for text in write(
            tmp_path,
            f"names_{length}",
            model.returns(**{f"{letter}{name}": value for letter, value in outputs.items()}),
        ):
            assert length >= 40 or "fmt: skip" not in text
    clean(tmp_path)


def test_strange_names(tmp_path: Path) -> None:
    names = [
        "class",
        "lambda",
        "np",
        "_np",
        "l",
        "I",
        "O",
        "range",
        "ValueError",
        "_check",
        "x",
        "für",
        "ａ",
        "1st",
        "a b",
    ]
    for number, name in enumerate([*names, "bytes", "isinstance", "_", "", '"', "\\", "\n", "日本語の名前" * 4]):
        model = Model(name)
        x = model.input(name, "f32", "n", 3)
        other = model.input(f"{name} ", "f32", name or "d", 3)
        many = model.constant(np.random.default_rng(0).random((600, 3)).astype(np.float32), name)
        value = model.call("+", other, 1.0, name=name)
        graph = model.returns(a=model.call("matmul", many, model.call("transpose", x)), b=value, c=value)
        write(tmp_path, f"name_{number}", graph)
    clean(tmp_path)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_constants_of_every_size(tmp_path: Path, dtype: str) -> None:
    rng = np.random.default_rng(1)
    for shape in [(1,), (5,), (12,), (3, 4), (2, 2, 2), (100,), (17, 30), (40, 40), (0, 3), (9, 9)]:
        array = (rng.random(shape) * 100 - 20 * (dtype[0] != "u")).astype(dtype)
        if shape == (9, 9):
            array = np.zeros(shape, dtype)
        model = Model()
        graph = model.returns(y=model.constant(array, "weights of\nlayer 1"))
        (tmp_path / f"{'_'.join(map(str, shape))}.py").write_text(source(graph), encoding="utf-8")
    clean(tmp_path)
