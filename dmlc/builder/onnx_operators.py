"""``dmlc.onnx.Gelu(x, approximate="tanh")``: any ONNX operator, carried through."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dmlc.builder.place import call_site, caller
from dmlc.builder.tensor import Tensor, TensorLike, arguments_in, home_of
from dmlc.diagnostics import DmlcError
from dmlc.ops.call import CallSite


class OnnxOperators:
    """The operators of a domain as attributes, as they stand in ONNX: ``dmlc.onnx.Gelu(x)``.

    Other domains are deeper: ``dmlc.onnx.com.microsoft.FastGelu(x)``. An operator takes its operands by position
    (``None`` for an optional one that is left out) and its ONNX attributes by keyword. ``outputs=n`` says how many
    results are wanted; with more than one they come as a tuple.
    """

    def __init__(self, domain: str = "") -> None:
        self._domain = domain

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if name[0].isupper():
            return _operator(self._domain, name)
        return OnnxOperators(f"{self._domain}.{name}" if self._domain else name)

    def __call__(self, *operands: TensorLike | None, **attributes: Any) -> Any:
        """Raises ``DmlcError`` E0504: the name of an operator begins with a capital letter."""
        domain, _, name = self._domain.rpartition(".")
        return _operator(domain, name)(*operands, **attributes)

    def __repr__(self) -> str:
        return f"<ONNX operators of {self._domain or 'ai.onnx'}>"


def _operator(domain: str, op_type: str) -> Callable[..., Any]:
    # onnx is loaded when the first operator is carried through, not for graphs that have none
    from dmlc.inference.carried import carry, carry_at_lowest_opset

    def function(*operands: TensorLike | None, outputs: int = 1, **attributes: Any) -> Any:
        span = caller()
        home = home_of(operands)
        arguments = arguments_in(home, operands, span)
        try:
            node = carry_at_lowest_opset(home.graph, domain, op_type, arguments, attributes, outputs, CallSite(span))
        except DmlcError:
            node = carry(home.graph, domain, op_type, arguments, attributes, outputs, call_site(span))
        results = tuple([Tensor(home, value) for value in node.results])
        return results[0] if outputs == 1 else results

    function.__name__ = function.__qualname__ = op_type
    function.__module__ = "dmlc.onnx"
    return function


#: The operators of ONNX's own domain, and by their domain's name all others.
onnx: OnnxOperators = OnnxOperators()
