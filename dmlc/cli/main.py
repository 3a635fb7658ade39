"""Entry point of the command line: finds the verb, runs it, converts errors to exit codes.

Nothing is loaded, not even ``typing`` or ``argparse``, before the verb is known, so that ``dmlc --help`` is quick.
"""

from __future__ import annotations

import errno
import gc
import importlib
import sys

from dmlc import __version__
from dmlc.cli.streams import drop_stdout, open_streams

FINE, WRONG_USAGE = 0, 2
INTERRUPTED = 128 + 2  # as a shell reports SIGINT
BROKEN_PIPE = 128 + 13  # as a shell reports SIGPIPE

#: Each verb is the module of that name beside this one.
VERBS = {
    "compile": "fuse and canonicalize a program or a model; write ONNX, NumPy code or text",
    "run": "run a program on data",
    "bench": "time a program node by node, beside the estimates of the report and the dispatch model",
    "check": "report whether a program compiles, and write nothing",
    "verify": "report whether two models or programs compute the same",
    "bisect": "find the node with which a fault comes in, by cutting the model in two",
    "repro": "write the smallest model that still shows a fault, with all that a report needs",
    "diff": "show how two models or programs differ",
    "decompose": "write fused operators of a model in primitive ones",
    "fmt": "lay out a program as the language reference does",
    "explain": "explain a code, an operation, a rule or a target, or the rewrites of a program",
    "inspect": "show a program's inputs, outputs, dims and nodes",
    "ops": "list the operations, or show one",
    "targets": "list the targets, or show one",
    "doctor": "report the installed libraries and devices, and the missing ones",
}

HELP = f"""\
usage: dmlc VERB ...

dmlc {__version__}: a graph compiler and a small language that fuses reductions before DirectML execution.

verbs:
{"".join(f"  {verb:<9} {summary}{chr(10)}" for verb, summary in VERBS.items())}
options:
  -h, --help   show this; `dmlc help VERB` shows the options of a verb
  --version    show the version

exit codes: 0 fine; 1 the answer is no (an error in the program, data that does not match, unsupported on the
target); 2 wrong usage, or a file of the command line cannot be opened or written; 3 a bug in dmlc
"""


def entry() -> None:
    """The console script."""
    open_streams()
    # Most objects of a command stay until it ends. Without both calls a compilation of ten lines takes 1.2 times as
    # long (Python 3.11, medians of interleaved runs). It leaves fewer than 100,000 objects, so nothing is collected.
    gc.set_threshold(100_000, 20, 20)
    code = main()
    gc.freeze()
    sys.exit(code)


def main(argv: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    try:
        try:
            code = _dispatch(list(sys.argv[1:] if argv is None else argv))
        except SystemExit as exit:  # argparse: help was shown, or the usage was wrong
            code = exit.code if isinstance(exit.code, int) else WRONG_USAGE
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # the reader went away, as `| head` does
        drop_stdout()
        return BROKEN_PIPE
    except OSError as error:  # a full disk; files that commands name are dealt with where they are opened
        drop_stdout()
        reason = "it is closed" if error.errno == errno.EBADF else error.strerror or error
        print(f"dmlc: cannot write to stdout: {reason}", file=sys.stderr)  # noqa: T201
        return WRONG_USAGE


def _dispatch(argv: list[str]) -> int:
    if argv[:1] == ["help"] and len(argv) > 1:
        return _run(argv[1], ["--help"]) if argv[1] in VERBS else _no_such_verb(argv[1:])
    if argv[:1] in (["-h"], ["--help"], ["help"]):
        print(HELP, end="")  # noqa: T201
        return FINE
    if argv[:1] == ["--version"]:
        print(f"dmlc {__version__}")  # noqa: T201
        return FINE
    if not argv or argv[0] not in VERBS:
        return _no_such_verb(argv)
    return _run(argv[0], argv[1:])


def _no_such_verb(argv: list[str]) -> int:
    import difflib

    text = "a verb is needed; dmlc --help lists them"
    if argv:
        near = difflib.get_close_matches(argv[0], [*VERBS, "--help", "--version"], n=1)
        kind = "option" if argv[0].startswith("-") else "verb"
        guess = f"did you mean {near[0]}?" if near else f"dmlc --help lists the {kind}s"
        text = f"there is no {kind} {argv[0]}; {guess}"
    print(f"dmlc: {text}", file=sys.stderr)  # noqa: T201
    return WRONG_USAGE


def _run(verb: str, argv: list[str]) -> int:
    from dmlc.cli.console import Console, UsageError
    from dmlc.cli.options import report_options
    from dmlc.cli.parser import Parser
    from dmlc.diagnostics import DmlcError, fail, on_command_line

    try:
        module = importlib.import_module(f"dmlc.cli.{verb}")
    except (Exception, SystemExit) as error:  # a library is missing; only the options of every verb are known
        return Console(verb, report_options(argv)).unexpected(error)
    parser = Parser(prog=f"dmlc {verb}", description=module.__doc__, allow_abbrev=False)
    module.add_arguments(parser)
    args = parser.parse_args(argv)
    args.words = argv
    console = Console(verb, args)
    try:
        with on_command_line():
            code: int = module.run(args, console)
        return code
    except UsageError as error:
        parser.error(str(error))
    except DmlcError as error:
        return console.fail(error)
    except MemoryError as error:
        from dmlc.diagnostics.catalogue.runs import OUT_OF_MEMORY

        return console.fail(fail(OUT_OF_MEMORY, f"there is not enough memory: {error}".rstrip(": ")))
    except (Exception, SystemExit) as error:
        return console.unexpected(error)
