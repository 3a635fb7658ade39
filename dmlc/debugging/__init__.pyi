"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what the package gives."""

from dmlc.debugging.bisection import BisectResult as BisectResult
from dmlc.debugging.bisection import BisectStep as BisectStep
from dmlc.debugging.bisection import bisect as bisect
from dmlc.debugging.constants import ConstantChange as ConstantChange
from dmlc.debugging.first_difference import ComparedValue as ComparedValue
from dmlc.debugging.first_difference import Location as Location
from dmlc.debugging.insides import NodeRecord as NodeRecord
from dmlc.debugging.model_diff import ModelDiff as ModelDiff
from dmlc.debugging.model_diff import diff as diff
from dmlc.debugging.reproduction import Repro as Repro
from dmlc.debugging.reproduction import repro as repro
from dmlc.debugging.verification import LocatedVerdict as LocatedVerdict
from dmlc.debugging.verification import last_line as last_line
from dmlc.debugging.verification import locate as locate
from dmlc.debugging.verification import verify as verify

__all__ = [
    "BisectResult",
    "BisectStep",
    "ComparedValue",
    "ConstantChange",
    "LocatedVerdict",
    "Location",
    "ModelDiff",
    "NodeRecord",
    "Repro",
    "bisect",
    "diff",
    "last_line",
    "locate",
    "repro",
    "verify",
]
