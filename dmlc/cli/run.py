"""Run a program on data: on DirectML where it is present, else on ONNX Runtime's CPU provider.

Without -o a summary of each output is printed: its type, and its value or its smallest, largest and mean element.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from dmlc import api
from dmlc.cli.console import Console, UsageError, table
from dmlc.cli.options import add_compile_options, add_report_options, add_source
from dmlc.cli.source import compile_source
from dmlc.ir import Array, TensorType, as_dtype
from dmlc.runtime import files

#: Outputs of up to this many elements are printed whole, in JSON of up to the other many.
_FEW, _FEW_JSON = 16, 1000
_NUMBERS: Any = {"float_kind": lambda number: f"{number:.6g}", "int_kind": str}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument(
        "--input",
        type=_input,
        action="append",
        default=[],
        metavar="x=x.npy",
        help="data for an input; x=data.npz:key takes one array of several; may be repeated",
    )
    parser.add_argument("--random", type=int, metavar="SEED", help="make up the inputs that --input does not give")
    parser.add_argument("--backend", choices=api.BACKENDS, help="where to run (default: dml where present, else cpu)")
    parser.add_argument("-o", "--output", metavar="OUT.npz", help="write the outputs, by name")
    add_compile_options(parser)
    add_report_options(parser)


def _input(text: str) -> tuple[str, str]:
    name, sign, place = text.partition("=")
    if not name or not sign or not place:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE")
    return name, place


def run(args: argparse.Namespace, console: Console) -> int:
    if args.output is not None and Path(args.output).suffix.lower() != ".npz":
        raise UsageError(f"outputs are written as .npz, not {args.output}")
    if args.random is not None and args.random < 0:
        raise UsageError(f"a seed is 0 or more, not {args.random}")
    given = {}
    for name, place in args.input:
        if name in given:
            raise UsageError(f"input {name} is given twice")
        given[name] = _load(name, place)
    with console.progress(args.source) as progress:
        program = compile_source(args, for_numpy=args.backend in ("numpy", "reference"), progress=progress)
    console.warn(program.diagnostics)
    feeds: dict[str, Any] = {} if args.random is None else program.random_feeds(args.random)
    backend = args.backend or program.default_backend()
    start = time.perf_counter()
    outputs = program.run({**feeds, **given}, backend=backend)
    console.detail(f"first run on {backend}, with loading: {(time.perf_counter() - start) * 1e3:.1f} ms")
    if args.output is not None:
        files.write_bytes(Path(args.output), files.npz_bytes(outputs))
        console.say(f"{args.output}: {', '.join(outputs)}")
    else:
        console.result(summary(outputs))
    console.document({"backend": backend, "outputs": {name: facts(array) for name, array in outputs.items()}})
    return 0


def _load(name: str, place: str) -> Array:
    """The array of ``FILE`` or ``FILE.npz:key``."""
    archive = re.match(r"(.*?\.npz):(.+)", place, re.IGNORECASE | re.DOTALL)  # a key may hold colons itself
    if archive:
        return files.load_array(Path(archive[1]), archive[2], name)
    return files.load_array(Path(place), None, name)


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
    words = [f"{key} {found[key]:.6g}" for key in ("min", "max", "mean")]
    if found["nan"]:
        words.append(f"NaN {found['nan']}")
    return ["  ".join(words)]


def facts(array: Array) -> dict[str, Any]:
    """An output as plain data: its values too, where they are not many."""
    out: dict[str, Any] = {"dtype": str(array.dtype), "shape": list(array.shape)}
    if array.size:
        nan = int(np.isnan(array).sum()) if array.dtype.kind == "f" else 0
        numbers = array[~np.isnan(array)] if nan else array
        if numbers.size:
            wide = numbers.astype(np.float64)
            out |= {"min": numbers.min().item(), "max": numbers.max().item(), "mean": float(wide.mean())}
        else:
            out |= dict.fromkeys(("min", "max", "mean"), float("nan"))
        out["nan"] = nan
    if array.size <= _FEW_JSON:
        out["values"] = array.tolist()
    return out
