"""Run a program on data: on DirectML where it is present, else on ONNX Runtime's CPU provider.

Without -o a summary of each output is printed: its type, and its value or its smallest, largest and mean element.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from dmlc import api
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console, UsageError
from dmlc.cli.inputs import add_inputs, feeds_of, given_inputs
from dmlc.cli.layout import table
from dmlc.cli.options import add_report_options, add_source
from dmlc.cli.source import compile_source
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.diagnostic import naming
from dmlc.ir import Array, TensorType, as_dtype
from dmlc.ir.answers import Answer, Real
from dmlc.runtime import files
from dmlc.runtime.feeds import unknown_inputs
from dmlc.runtime.webgpu import on_software

#: Outputs of up to this many elements are printed whole, in JSON of up to the other many.
_FEW, _FEW_JSON = 16, 1000
#: Names of the backends in a sentence.
_PLACES = {
    "webgpu": "ONNX Runtime's WebGPU provider",
    "cpu": "ONNX Runtime's CPU provider",
    "numpy": "NumPy code",
    "reference": "the reference",
}
_NUMBERS: Any = {"float_kind": lambda number: f"{number:.6g}", "int_kind": str}


class OutputFacts(Answer, frozen=True):
    """An output of a run: its smallest, largest and mean element without NaN, where it has elements, how many elements
    are NaN, and all elements where they are not many."""

    dtype: str
    shape: tuple[int, ...]
    min: Real | bool | UnsetType = UNSET
    max: Real | bool | UnsetType = UNSET
    mean: Real | UnsetType = UNSET
    nan: int | UnsetType = UNSET
    values: Any = UNSET


class RunAnswer(Answer, frozen=True):
    """The outputs of a run."""

    backend: str
    outputs: dict[str, OutputFacts]


ANSWERS = (RunAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    add_inputs(parser)
    parser.add_argument("--backend", choices=api.BACKENDS, help="where to run (default: dml where present, else cpu)")
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="write the outputs, by name")
    help = "do not check that the given values keep the promised ranges of their inputs"
    parser.add_argument("--trust-ranges", action="store_true", help=help)
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.output is not None and Path(args.output).suffix.lower() != ".npz":
        raise UsageError(f"outputs are written as .npz, not {args.output}")
    given: dict[str, Array] = {}
    unread: DmlcError | None = None
    try:
        given = given_inputs(args)
    except DmlcError as error:  # an input that does not exist explains it better
        unread = error
    with console.progress(args.source) as progress:
        program = compile_source(args, for_numpy=args.backend in ("numpy", "reference"), progress=progress)
    if unread is not None:
        unknown = unknown_inputs(program.signature, [name for name, _ in args.input])
        raise DmlcError(unknown) if unknown else unread
    console.warn(program.diagnostics)
    feeds = feeds_of(args, given, program)
    checked = program.signature.ranges and not args.trust_ranges
    backend = args.backend or program.default_backend()
    start = time.perf_counter()
    with console.progress(args.source) as progress, naming(args.source):
        progress("running")
        outputs = program.run(feeds, backend=backend, check_ranges=bool(checked))
    if not program.target.runs_on_cpu and backend != "dml":
        provider = "it" if backend == "webgpu" else "the CPU provider"
        console.say(f"note: ran on {_PLACES[backend]}: {program.target.name} makes no promise for {provider}")
    if backend == "webgpu" and on_software():
        console.say(
            "note: the WebGPU provider ran on a driver that computes on the CPU: its times say nothing of a GPU"
        )
    console.detail(f"first run on {backend}, with loading: {(time.perf_counter() - start) * 1e3:.1f} ms")
    if args.output is not None:
        files.write_bytes(Path(args.output), files.npz_bytes(outputs))
        console.say(f"{args.output}: {', '.join(outputs)}")
    else:
        console.result(summary(outputs))
    console.document(RunAnswer(backend, {name: facts(array) for name, array in outputs.items()}))
    return 0


# --- what the outputs look like


def summary(outputs: dict[str, Array]) -> str:
    """One line for each output."""
    return table([name, _type(array), *_words(array)] for name, array in outputs.items())


def _type(array: Array) -> str:
    return str(TensorType(as_dtype(array.dtype), array.shape))


def _words(array: Array) -> list[str]:
    if array.size <= _FEW:
        return [
            np.array2string(array, separator=", ", max_line_width=sys.maxsize, formatter=_NUMBERS).replace("\n", "")
        ]
    if array.dtype == np.bool_:
        return [f"{int(array.sum())} of {array.size} true"]
    found = facts(array)
    words = [f"{key} {getattr(found, key):.6g}" for key in ("min", "max", "mean")]
    if found.nan:
        words.append(f"NaN {found.nan}")
    return ["  ".join(words)]


def facts(array: Array) -> OutputFacts:
    """Describe an output: its elements too, where they are not many."""
    values = array.tolist() if array.size <= _FEW_JSON else UNSET
    found = OutputFacts(str(array.dtype), array.shape, values=values)
    if not array.size:
        return found
    nan = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
    numbers = array[~np.isnan(array)] if nan else array
    least = most = mean = float("nan")
    if numbers.size:
        least, most = numbers.min().item(), numbers.max().item()
        mean = float(numbers.astype(np.float64).mean())
    return replace(found, min=least, max=most, mean=mean, nan=nan)
