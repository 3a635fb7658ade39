"""Written by ``python -m tools.builder_stubs --write``; a test holds it to what the package gives."""

from dmlc.importers.again import read_again as read_again
from dmlc.importers.definitions import in_definitions as in_definitions
from dmlc.importers.definitions import with_definitions as with_definitions
from dmlc.importers.definitions import with_kernels as with_kernels
from dmlc.importers.faults import blaming as blaming
from dmlc.importers.fixed_shapes import fix_shapes as fix_shapes
from dmlc.importers.function import ModelFunction as ModelFunction
from dmlc.importers.model import import_model as import_model
from dmlc.importers.model import read_model as read_model
from dmlc.importers.opset import choose_opset as choose_opset
from dmlc.importers.opset import join_opset as join_opset
from dmlc.importers.opset import lost_definition as lost_definition
from dmlc.importers.opset import says_flattened as says_flattened
from dmlc.importers.opset import why_to_stay as why_to_stay

__all__ = [
    "ModelFunction",
    "blaming",
    "choose_opset",
    "fix_shapes",
    "import_model",
    "in_definitions",
    "join_opset",
    "lost_definition",
    "read_again",
    "read_model",
    "says_flattened",
    "why_to_stay",
    "with_definitions",
    "with_kernels",
]
