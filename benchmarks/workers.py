"""Throughput of a program with ONNX Runtime's threads and with processes of joblib and dask, and the bytes they send.

``python -m benchmarks.workers`` prints the table of ``docs/how_to/many_machines.md``. It needs the extra ``cluster``.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import dmlc

MODEL = Path(__file__).parent.parent / "examples" / "02_head_on_a_model" / "model.dml"
BLOCK, BLOCKS, ROUNDS = 16, 12, 12


def answers(block: Any, runner: Any) -> Any:
    """The answer for each photo of a block."""
    return runner(photo=block)["upside_down"]


def all_answers(blocks: Any, runner: Any) -> Any:
    """The answers for all blocks, one after another in this process."""
    return [answers(block, runner) for block in blocks]


def by_joblib(pool: Any, blocks: Any, runner: Any) -> Any:
    """The answers for all blocks, from the processes of a pool."""
    from joblib import delayed

    return pool(delayed(answers)(block, runner) for block in blocks)


def by_dask(client: Any, lazy: Any) -> Any:
    """The answers for all blocks, from the workers of a cluster."""
    return client.compute(lazy).result()


def ways(program: Any, photos: Any) -> dict[str, Callable[[], Any]]:
    """Functions that score all photos, each in another way. Workers have their data before the clock runs."""
    from dask import array
    from dask.distributed import Client, LocalCluster
    from joblib import Parallel

    blocks = np.split(photos, BLOCKS)
    found: dict[str, Callable[[], Any]] = {}
    for threads in (1, 2):
        found[f"1 process, {threads} threads"] = partial(all_answers, blocks, program.runner(threads=threads))
    runner = program.runner(threads=1)
    for workers in (1, 2):
        pool = Parallel(n_jobs=workers, backend="loky")
        found[f"joblib, {workers} workers of 1 thread"] = partial(by_joblib, pool, blocks, runner)
        client = Client(LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0"))
        split = client.persist(array.from_array(photos, chunks=(BLOCK, *photos.shape[1:])))
        sent = client.scatter(runner, broadcast=True)
        lazy = split.map_blocks(answers, sent, drop_axis=(1, 2, 3), dtype=bool, meta=np.empty(0, bool))
        found[f"dask, {workers} workers of 1 thread"] = partial(by_dask, client, lazy)
    return found


def processor_seconds() -> float:
    """Seconds of processors that this process and its children have used."""
    import psutil

    me = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (me, *me.children(recursive=True)))


def main() -> None:
    """Print photos for each second and for each second of a processor, the best of some rounds; and bytes sent."""
    program = dmlc.compile(MODEL, bind={"batch": BLOCK, "H": 48, "W": 192})
    photos = np.random.default_rng(0).integers(0, 256, (BLOCK * BLOCKS, 48, 192, 3), dtype=np.uint8)
    functions = ways(program, photos)
    expected = np.concatenate(functions["1 process, 1 threads"]())
    best = {name: (float("inf"), float("inf")) for name in functions}
    for _ in range(ROUNDS):
        for name, score in functions.items():
            start, used = time.perf_counter(), processor_seconds()
            result = score()
            taken = time.perf_counter() - start, processor_seconds() - used
            best[name] = min(best[name][0], taken[0]), min(best[name][1], taken[1])
            assert np.array_equal(np.ravel(result), expected)
    for name, (seconds, used) in best.items():
        print(f"{name:30}{len(photos) / seconds:6.0f} a second{len(photos) / used:6.0f} a processor second")  # noqa: T201
    sent = {
        "runner": program.runner(threads=1),
        "block of photos": photos[:BLOCK],
        "block of answers": expected[:BLOCK],
    }
    for name, value in sent.items():
        print(f"{name:30}{len(pickle.dumps(value)):8} bytes")  # noqa: T201


if __name__ == "__main__":
    main()
