"""Entry point of the command line: finds the command, runs it, converts errors to exit codes.

Nothing is loaded, not even ``typing`` or ``argparse``, before the command is known, so that ``dmlc --help`` is quick.
"""

from __future__ import annotations

import errno
import gc
import importlib
import sys

from dmlc import __version__
from dmlc.cli.streams import drop_stdout, open_streams

FINE, WRONG_USAGE = 0, 2
SIGINT = 2
BROKEN_PIPE = 128 + 13  # as a shell reports SIGPIPE

#: The commands in their groups, each with a summary. Each is the module of that name in this package.
GROUPS = {
    "build": {
        "compile": "write an ONNX model, NumPy code or text of a program or a model",
        "check": "report whether a program or a model runs on the target, and what improves it",
        "fmt": "lay out a program as the language reference does",
        "decompose": "write fused operators of a model in primitive ones",
    },
    "run": {
        "run": "run a program on data",
        "bench": "time a program node by node",
    },
    "find faults": {
        "verify": "report whether two models or programs compute the same",
        "diff": "show how two models or programs differ",
        "bisect": "find the first node that makes a model wrong",
        "repro": "write the smallest model that still shows a fault, and a report",
    },
    "look": {
        "explain": "explain a code, an operation, a rule, a word, or the rewrites of a program",
        "inspect": "show the inputs, outputs, dims and nodes of a program or a model",
        "graph": "draw the graph of a program or a model by where its nodes run",
        "report": "write a page about a compilation, for people who did not run it",
        "ops": "list the operations, or show one",
        "targets": "list the targets, or show one",
        "doctor": "report the installed libraries and devices, and the missing ones",
        "lsp": "serve an editor: mistakes, types and completion while a program is typed",
        "completion": "print a script that completes commands and options in a shell",
    },
}
VERBS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
#: The commands that print a JSON document. An editor's server speaks another protocol, and a script is for a shell.
DOCUMENTED = tuple([name for name in VERBS if name not in ("lsp", "completion")])
#: Names of other tools for a command.
FOREIGN = {
    **dict.fromkeys(("build", "convert", "export", "optimize", "simplify", "transpile"), "compile"),
    **dict.fromkeys(("lint", "validate"), "check"),
    **dict.fromkeys(("compare", "test"), "verify"),
    **dict.fromkeys(("info", "show", "dump", "print", "summary"), "inspect"),
    **dict.fromkeys(("benchmark", "profile", "time"), "bench"),
    **dict.fromkeys(("format",), "fmt"),
    **dict.fromkeys(("reduce", "minimize"), "repro"),
}
#: A name with more letters wrong is another name.
_MOST_WRONG = 2


def _listed_commands() -> str:
    groups = [
        f"{title}:\n" + "".join(f"  {name:<10} {summary}\n" for name, summary in commands.items())
        for title, commands in GROUPS.items()
    ]
    return "\n".join(groups)


HELP = f"""\
usage: dmlc COMMAND ...

dmlc {__version__} makes ONNX models run correctly, and fully on the GPU, with DirectML; it has a small
language for parts of models whose reductions, argmax and top-k must be right.

{_listed_commands()}
options:
  -h, --help   show this; `dmlc help COMMAND` shows the options of a command
  --help-all   show this and all options of all commands
  --version    show the version

exit codes: 0 fine; 1 the check failed (an error in the program, data that does not match, or the
models differ); 2 wrong usage, or a file of the command line cannot be opened or written; 3 a bug in
dmlc
"""


def entry() -> None:
    """The console script."""
    open_streams()
    # Most objects of a command stay until it ends. Without both calls a compilation of ten lines takes 1.2 times as
    # long (Python 3.11, medians of interleaved runs). It leaves fewer than 100,000 objects, so nothing is collected.
    gc.set_threshold(100_000, 20, 20)
    code = main()
    gc.freeze()
    if code == 128 + SIGINT:  # Python ends by the signal itself, so that a loop of a shell ends too
        sys.excepthook = lambda *_: None
        raise KeyboardInterrupt
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
    except KeyboardInterrupt as end:
        return 128 + getattr(end, "number", SIGINT)  # as a shell reports signals
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
    if argv[:1] == ["--help-all"]:
        return _help_all()
    if argv[:1] == ["--version"]:
        print(f"dmlc {__version__}")  # noqa: T201
        return FINE
    if not argv or argv[0] not in VERBS:
        return _no_such_verb(argv)
    return _run(argv[0], argv[1:])


def _help_all() -> int:
    print(HELP, end="")  # noqa: T201
    code = FINE
    for verb in VERBS:
        print()  # noqa: T201
        try:
            code = max(code, _run(verb, ["--help-all"]))
        except SystemExit:  # argparse: help was shown
            sys.stdout.flush()
    return code


def _no_such_verb(argv: list[str]) -> int:
    text = "a command is needed; dmlc --help lists them"
    if argv:
        from dmlc.diagnostics.suggest import nearest

        kind = "option" if argv[0].startswith("-") else "command"
        near = FOREIGN.get(argv[0]) or nearest(argv[0], [*VERBS, "--help", "--help-all", "--version"], _MOST_WRONG)
        guess = f"did you mean {near}?" if near else f"dmlc --help lists the {kind}s"
        text = f"there is no {kind} {argv[0]}; {guess}"
    print(f"dmlc: {text}", file=sys.stderr)  # noqa: T201
    return WRONG_USAGE


def _run(verb: str, argv: list[str]) -> int:
    from dmlc.cli.signals import end_on_signals

    end_on_signals()
    from dmlc.cli.console import Console, UsageError
    from dmlc.cli.options import report_options
    from dmlc.cli.parser import Parser
    from dmlc.diagnostics import DmlcError, fail, on_command_line

    try:
        module = importlib.import_module(f"dmlc.cli.{verb}")
    except (Exception, SystemExit) as error:  # a library is missing; only the options of every verb are known
        return Console(verb, report_options(argv)).unexpected(error)
    common = getattr(module, "COMMON_OPTIONS", ())
    parser = Parser(prog=f"dmlc {verb}", description=module.__doc__, allow_abbrev=False, common=common)
    module.add_arguments(parser)
    parser.rest = getattr(module, "add_rest", None)
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
