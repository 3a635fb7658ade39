"""Draw the graph of a program or a model: its nodes by where they run, in the groups of their names.

OUT's suffix decides the form: .svg, .mmd (Mermaid) or .dot (Graphviz). An .svg file needs `pip install "dmlc[report]"`.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Literal

from dmlc.cli.compile import check_apart
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console, UsageError, human_bytes
from dmlc.cli.counts import as_written
from dmlc.cli.options import add_report_options, add_source
from dmlc.cli.source import compile_source, open_source
from dmlc.diagnostics.counted import counted
from dmlc.ir.answers import Answer
from dmlc.runtime import files
from dmlc.views.diagram_text import dot_text, mermaid_text
from dmlc.views.stages import compiled_scene, source_scene
from dmlc.views.svg import picture


class GraphAnswer(Answer, frozen=True):
    """The picture that was written. ``nodes`` counts inputs and outputs too."""

    source: str
    output: str
    stage: Literal["source", "compiled"]
    nodes: int
    edges: int
    bytes: int


ANSWERS = (GraphAnswer,)
_WRITERS = {".svg": picture, ".mmd": mermaid_text, ".dot": dot_text}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument("-o", "--output", metavar="OUT", required=True, help="the file to write: .svg, .mmd or .dot")
    stages = ("source", "compiled")
    parser.add_argument("--stage", choices=stages, default="compiled", help="which graph to draw (default: compiled)")
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    path = Path(args.output)
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"cannot draw {args.output}: its suffix is none of {', '.join(_WRITERS)}")
    check_apart("OUT", args.output, "SRC", args.source)
    source = open_source(args)
    with console.progress(args.source) as progress:
        program = compile_source(args, source=source, progress=progress)
        progress("drawing")
        if args.stage == "source":
            scene = source_scene(program, as_written(args, program, source))
        else:
            scene = compiled_scene(program)
        data = write(scene).encode()
    files.spare_weights(program.source_graph, path)
    files.write_bytes(path, data)
    nodes = counted(len(scene.nodes), "node")
    console.say(f"{args.output}: {args.stage}, {nodes} with inputs and outputs, {human_bytes(len(data), short=True)}")
    answer = GraphAnswer(args.source, args.output, args.stage, len(scene.nodes), len(scene.edges), len(data))
    console.document(answer)
    return 0
