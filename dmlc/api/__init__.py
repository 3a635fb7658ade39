"""The straight line: ``compile(source)`` loads, binds and lowers; a ``Program`` emits, saves and runs."""

from dmlc.api.compiled import with_models_untouched, written_graph
from dmlc.api.entry import compile  # noqa: A004
from dmlc.api.kinds import SUFFIXES, kind_of
from dmlc.api.load_result import LoadCheck
from dmlc.api.program import BACKENDS, Profile, Program, emitted, emitted_to, with_results
from dmlc.api.sources import ProgramSource, TextSource

__all__ = [
    "BACKENDS",
    "SUFFIXES",
    "LoadCheck",
    "Profile",
    "Program",
    "ProgramSource",
    "TextSource",
    "compile",
    "emitted",
    "emitted_to",
    "kind_of",
    "with_models_untouched",
    "with_results",
    "written_graph",
]
