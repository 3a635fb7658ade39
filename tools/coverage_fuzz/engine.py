"""The loop: libFuzzer, as atheris brings it, makes inputs out of those that reached something new."""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import importlib
import os
import random
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

TARGETS = {"text": "text", "model": "model"}
#: Modules that run often and decide little: their branches are not counted, which is what costs.
UNCOUNTED = (
    "dmlc.text.syntax.lexer", "dmlc.text.syntax.tokens", "dmlc.diagnostics.render", "dmlc.diagnostics.diagnostic",
    "dmlc.diagnostics.source", "dmlc.ir.collector", "dmlc.ir.graph", "dmlc.ir.dim", "dmlc.ir.dtype", "dmlc.ir.types",
    "dmlc.ir.verifier", "dmlc.ops.rules", "dmlc.codegen.artifact", "dmlc.importers.order", "dmlc.importers.scope",
)  # fmt: skip
#: Address space, so that a bomb is a MemoryError and not the end of the machine.
_MOST_ADDRESSES = 4 << 30
#: Python's collector runs when it is told to: by itself it takes a tenth of the time.
_COLLECT_EVERY = 500
#: After so many seconds without the next ``_COLLECT_EVERY`` inputs the process shows where it is, and ends.
_HANGS = 900
#: Share of the inputs that break a sound one anew: most of the corpus is broken already, where little is reached.
_FROM_SEEDS = 0.3


class Loop:
    """Counts what comes of inputs, and keeps what crashes: one input for each place, the smallest."""

    def __init__(self, judge: Any, harness: Any, runs: int, crashes: Path) -> None:
        self.harness, self.runs, self.crashes = harness, runs, crashes
        self.judge = judge
        self.outcomes: Counter[str] = Counter()
        self.sizes: dict[str, int] = {}
        self.count = 0
        self.start = time.monotonic()
        self.slowest = 0.0

    def one(self, data: bytes) -> None:
        start = time.monotonic()
        found = self.judge.judge(self.harness.read, data)
        self.slowest = max(self.slowest, time.monotonic() - start)
        self.count += 1
        if isinstance(found, str):
            self.outcomes[found or "fine"] += 1
        else:
            self.outcomes[f"CRASH {found.kind}"] += 1
            self.keep(data, found)
        if self.count % _COLLECT_EVERY == 1:
            gc.collect()
            faulthandler.dump_traceback_later(_HANGS, exit=True)
        if self.count % 20_000 == 0:
            self.report()
        if self.count >= self.runs:
            self.report()
            sys.stdout.flush()
            os._exit(1 if self.sizes else 0)  # libFuzzer has no other way to stop, and keeps its corpus as it goes

    def keep(self, data: bytes, found: Any) -> None:
        name = f"{found.kind}-{hashlib.sha1(found.place.encode()).hexdigest()[:10]}"
        if len(data) >= self.sizes.get(name, len(data) + 1):
            return
        if name not in self.sizes:
            print(f"{name}: {found.place}\n{found.text}", flush=True)
        self.sizes[name] = len(data)
        self.crashes.mkdir(parents=True, exist_ok=True)
        (self.crashes / name).write_bytes(data)

    def report(self) -> None:
        seconds = time.monotonic() - self.start
        took = f"{self.count:,} executions in {seconds:.0f} s ({self.count / seconds:.0f}/s)"
        most = f"peak {self.judge.peak() >> 20} MiB, slowest {self.slowest:.2f} s"
        outcomes = dict(self.outcomes.most_common())
        print(f"{took}, {most}, {len(self.sizes)} crashes; {outcomes}", flush=True)


def fuzz(atheris: Any, target: str, runs: int, corpus: Path, crashes: Path, seed: int) -> None:
    """Never returns: the process ends after so many inputs, with 1 where one of them crashed."""
    _limit_memory()
    with atheris.instrument_imports(include=["dmlc"], exclude=list(UNCOUNTED), enable_loader_override=False):
        judge = importlib.import_module("tools.coverage_fuzz.judge")
        harness = importlib.import_module(f"tools.coverage_fuzz.{TARGETS[target]}")
        seeds = harness.seeds()
        for data in seeds:  # so that what is loaded when it is needed is counted too
            judge.judge(harness.read, data)
    corpus.mkdir(parents=True, exist_ok=True)
    for data in seeds:
        (corpus / hashlib.sha1(data).hexdigest()).write_bytes(data)
    words = corpus.parent / f"{target}.dict"
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in harness.DICTIONARY), encoding="ascii")
    loop = Loop(judge, harness, runs, crashes)

    def mutate(data: bytes, most: int, number: int) -> bytes:
        rng = random.Random(number)
        if rng.random() < _FROM_SEEDS:
            data = rng.choice(seeds)
        out: bytes = harness.mutate(data, most, rng, lambda raw: atheris.Mutate(raw, most))
        return out[:most]

    flags = [f"-max_len={harness.MAX_LEN}", "-len_control=0", "-mutate_depth=2", f"-seed={seed}", f"-dict={words}"]
    flags += [
        "-timeout=120",
        "-report_slow_units=30",
        "-rss_limit_mb=3000",
        f"-artifact_prefix={crashes}/",
        "-reload=0",
    ]
    crashes.mkdir(parents=True, exist_ok=True)
    atheris.Setup([sys.argv[0], *flags, str(corpus)], loop.one, custom_mutator=mutate)
    gc.collect()
    gc.freeze()
    gc.disable()
    atheris.Fuzz()


def change(target: str, runs: int, corpus: Path, crashes: Path, seed: int) -> None:
    """Changes the inputs of a corpus without counting branches: nothing is learned, but three times as fast. Needs no
    atheris. Never returns either."""
    _limit_memory()
    judge = importlib.import_module("tools.coverage_fuzz.judge")
    harness = importlib.import_module(f"tools.coverage_fuzz.{TARGETS[target]}")
    pool = [*harness.seeds(), *(path.read_bytes() for path in sorted(corpus.glob("*")))]
    loop, rng = Loop(judge, harness, runs, crashes), random.Random(seed)

    def other_byte(data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] + rng.choice((b"", rng.randbytes(1), rng.randbytes(2))) + data[at + 1 :]

    gc.collect()
    gc.freeze()
    gc.disable()
    while True:
        data = harness.mutate(rng.choice(pool), harness.MAX_LEN, rng, other_byte)
        while rng.random() < 0.25:
            data = harness.mutate(data, harness.MAX_LEN, rng, other_byte)
        loop.one(data[: harness.MAX_LEN])


def _escaped(word: str) -> str:
    return "".join(c if c.isalnum() and c.isascii() else "".join(f"\\x{b:02x}" for b in c.encode()) for c in word)


def _limit_memory() -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_ADDRESSES, _MOST_ADDRESSES))
