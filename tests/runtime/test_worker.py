"""The worker: it ends with its parent, and what it may allocate has a limit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from dmlc.runtime.hosts import WORKER
from dmlc.runtime.ort_model import NONE, OrtModel
from dmlc.runtime.runnable import RunFailed
from tests import kit

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and limits of POSIX")

#: Starts the worker, prints its process, and has it run for hours.
ENDLESS = """
import numpy as np
from onnx import parser
from dmlc.runtime.ort_model import OrtModel
from dmlc.workers import SESSIONS
text = '''<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, int64 n) => (float[3] y) <bool c = {1}> {
    y = Loop(n, c, x) <body = b (int64 i, bool d, float[3] v) => (bool e, float[3] w) { e = Identity(d) w = Add(v, v) }>
}'''
model = OrtModel(parser.parse_model(text), isolated=True)
print(SESSIONS._process.pid, flush=True)
model.run({"x": np.zeros(3, np.float32), "n": np.array(10**12)})
"""


def runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    return stat.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="processes are looked up in /proc")
def test_it_ends_with_its_parent() -> None:
    with subprocess.Popen([sys.executable, "-c", ENDLESS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(0.3)  # it runs by then
        assert runs(worker)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        end = time.monotonic() + 20
        while runs(worker) and time.monotonic() < end:
            time.sleep(0.1)
        assert not runs(worker)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems do not keep this limit")
def test_a_run_that_fills_the_memory_fails_alone() -> None:
    grown = kit.onnx("g (int64[1] n) => (float[?] y) { y = ConstantOfShape(n) }")
    model = OrtModel(grown, level=NONE, threads=1, isolated=True)
    before = WORKER.generation
    with pytest.raises(RunFailed, match="ran out of memory: a run may take 4 GiB"):
        model.run({"n": np.array([3 << 30])})
    assert model.run({"n": np.array([1 << 26])})["y"].shape == (1 << 26,)  # nothing of the limit is used up
    assert model.run({"n": np.array([2])})["y"].tolist() == [0, 0]
    assert WORKER.generation == before


def test_a_model_in_this_process_and_in_the_worker() -> None:
    model = kit.onnx("g (float[N] x) => (float[N] y) { a = Neg(x) y = Exp(a) }")
    x = np.linspace(-1, 1, 5, dtype=np.float32)
    here, there = (OrtModel(model, isolated=isolated) for isolated in (False, True))
    assert here.inputs == there.inputs == ("x",)
    assert here.types == there.types == {"y": "tensor(float)"}
    assert kit.same(here.run({"x": x}), there.run({"x": x}))
    assert here.run({"x": x}, []) == {}
