"""Type parameters: the operands and results of an ONNX operator that share their type."""

from __future__ import annotations

from functools import lru_cache

from msgspec import Struct
from onnx import defs

from dmlc.ir import DType
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.schemas import TYPE_NAMES


class Letters(Struct, frozen=True):
    """The type parameter of each declared operand and result, and the dtypes of the language that each may be.

    A type that is written out is a parameter of its own. The last operand or result may stand for more.
    """

    operands: tuple[str, ...]
    results: tuple[str, ...]
    dtypes: dict[str, frozenset[DType]]

    def operand(self, index: int) -> str:
        return self.operands[min(index, len(self.operands) - 1)]

    def result(self, index: int) -> str:
        return self.results[min(index, len(self.results) - 1)]


@lru_cache(maxsize=256)
def letters_of(domain: str, op_type: str, version: int) -> Letters | None:
    """The type parameters of an operator; None where onnx does not know it, or its operands may differ in type."""
    domain = plain_domain(domain)
    if not defs.has(op_type, version, domain):
        return None
    schema = defs.get_schema(op_type, version, domain)
    formals = (*schema.inputs, *schema.outputs)
    if not all(formal.is_homogeneous for formal in formals):
        return None
    texts = {c.type_param_str: c.allowed_type_strs for c in schema.type_constraints}
    dtypes = {}
    for formal in formals:
        names = [text[len("tensor(") : -1] for text in texts.get(formal.type_str, [formal.type_str])]
        dtypes[formal.type_str] = frozenset([TYPE_NAMES[name] for name in names if name in TYPE_NAMES])
    return Letters(
        tuple([formal.type_str for formal in schema.inputs]),
        tuple([formal.type_str for formal in schema.outputs]),
        dtypes,
    )
