"""ONNX Runtime's WebGPU provider: a model as it is, with its sizes fixed, and compiled for three targets.

The models are those of the folder of fixtures, and the pattern list.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

from benchmarks.records import OURS, Case, Settings
from benchmarks.sessions import SessionRun
from benchmarks.suites.pattern_list import PATTERNS, QUICK, Sizes
from benchmarks.suites.patterns import model_of
from dmlc.runtime.ort_model import options_of
from dmlc.runtime.webgpu import on_software
from dmlc.targets import load_target
from dmlc.workers.sessions import race, session_settings
from tools.fixture_folder import cases, fixtures
from tools.webgpu_agreement import open_sizes, sized, wrong_outputs
from tools.webgpu_runs import Log, run_on_device

Arrays = Mapping[str, np.ndarray]
ORIGINAL, FIXED = "original", "sizes fixed"
VARIANTS = (ORIGINAL, FIXED, "onnx", "directml", OURS)
#: Figures of a run on the device.
COUNTS = ("dispatches", "nodes on the CPU", "copies")
#: Seconds for the times of one case, at most.
_MOST = 0.5
#: Seconds of a run that is too long to be timed.
_LONG = 0.2
#: Models that no sum counts: sizes of the first two depend on numbers; two sizes of the third share a name.
APART = ("retinanet.ts15", "ssd.ts14", "ppocr_cls_mobile")


def webgpu(settings: Settings) -> Iterator[Case]:
    """Raises ``DmlcError`` where the provider or a device is missing."""
    is_software = on_software()
    note = ("a driver that computes on the CPU: its times are not a GPU's",) if is_software else ()
    models = list((fixtures("torch") | fixtures("whole")).items())
    for name, path in models[: 2 if settings.quick else None]:
        (feeds, want), *_ = cases(path)
        yield _compared(
            Case("webgpu", name, settings.threads, () if name in APART else ("model",), notes=note),
            path,
            feeds,
            want,
            settings,
        )
    sizes = QUICK if settings.quick or is_software else Sizes()
    for pattern in PATTERNS[: 2 if settings.quick else None]:
        model, feeds = model_of(pattern, sizes)
        names = [info.name for info in model.graph.output]
        want = dict(zip(names, SessionRun(model, feeds, settings.threads, level="none").results(), strict=True))
        case = Case("webgpu", pattern.name, settings.threads, ("pattern",), notes=note)
        yield _compared(case, model, feeds, want, settings)


def sums(cases: Sequence[Case], tag: str, variant: str) -> dict[str, float]:
    """The sums over the cases with a tag that all variants ran, by the count, and how many ran wholly on the GPU. A
    case without open sizes is as it is with its sizes fixed."""
    chosen = [
        case for case in cases if tag in case.tags and None not in [_count(case, each, COUNTS[0]) for each in VARIANTS]
    ]
    out = {name: sum(_count(case, variant, name) or 0 for case in chosen) for name in COUNTS}
    return {**out, "wholly on the GPU": sum(not _count(case, variant, COUNTS[1]) for case in chosen), "of": len(chosen)}


def is_broken(case: Case) -> bool:
    """Return whether ours did not run, or is wrong where the original is right."""
    return _count(case, OURS, COUNTS[0]) is None or (OURS in case.wrong and ORIGINAL not in case.wrong)


def _count(case: Case, variant: str, name: str) -> float | None:
    found = case.figures.get(f"{variant}: {name}")
    return case.figures.get(f"{ORIGINAL}: {name}") if found is None and variant == FIXED else found


def counts_text(case: Case, variant: str) -> str:
    """The counts of a variant: ``68 / 62 / 6``; empty where it did not run."""
    found = [case.figures.get(f"{variant}: {name}") for name in COUNTS]
    return "" if None in found else " / ".join(f"{count:.0f}" for count in found if count is not None)


def _compared(case: Case, source: Path | onnx.ModelProto, feeds: Arrays, want: Arrays, settings: Settings) -> Case:
    """Fill in a case. A variant with other numbers is counted, and not timed; one that fails is a note."""
    runs: dict[str, Callable[[], object]] = {}
    notes, wrong = list(case.notes), []
    model = onnx.load(source) if isinstance(source, Path) else source
    folder = source.parent if isinstance(source, Path) else None
    for variant in VARIANTS:
        dims = open_sizes(model, feeds) if variant == FIXED else {}
        if variant == FIXED and not dims:
            continue
        try:
            emitted, at = model, folder
            if variant not in (ORIGINAL, FIXED):
                target = "webgpu" if variant == OURS else variant
                artifact = sized(source, feeds, load_target(target)).artifact("onnx")
                emitted, at = artifact.payload, artifact.folder
            given: dict[str, Any] = {"options": options_of(emitted, "webgpu"), "dims": dims}
            found = run_on_device(emitted, feeds, at, **given)
            counts = (len(found.programs), len(found.on_cpu), len(found.copies))
            case.figures |= {f"{variant}: {name}": count for name, count in zip(COUNTS, counts, strict=True)}
            bad = wrong_outputs(found.outputs, want)
            if bad:
                wrong.append(variant)
                notes.append(f"{variant}: {bad[0]}")
            elif settings.rounds and found.seconds < _LONG:
                runs[variant] = _timed(emitted, feeds, at, **given)
        except Exception as error:  # a variant may fail in any way; that is a result
            notes.append(f"{variant} failed: {type(error).__name__}: {' '.join(str(error).split())[:120]}")
    case.seconds, case.figures["noise"] = race(runs, settings.rounds, _MOST) if runs else ({}, 1.0)
    case.wrong, case.notes = tuple(wrong), tuple(notes)
    return case


def _timed(
    model: onnx.ModelProto,
    feeds: Arrays,
    folder: Path | None,
    *,
    options: Mapping[str, str],
    dims: Mapping[str, int],
) -> Callable[[], object]:
    """A run of a session that logs nothing."""
    text = None if folder is None else str(folder.absolute())
    given = {"backend": "webgpu", "folder": text, "dims": dims, "provider_options": dict(options)}
    settings, providers = session_settings(onnxruntime, given)
    with Log():
        session = onnxruntime.InferenceSession(model.SerializeToString(), settings, providers=providers)
    taken = {value.name for value in [*session.get_inputs(), *session.get_overridable_initializers()]}
    fed = {name: array for name, array in feeds.items() if name in taken}
    return lambda: session.run(None, fed)
