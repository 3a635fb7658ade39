"""The statements of the generated function: a statement for each named value, short unnamed ones inside others."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dmlc.codegen.numpy.expr import ATOM, SUM, Expr, expr, method, name, sequence
from dmlc.codegen.numpy.layout import INDENT, fits, layout, statement
from dmlc.codegen.numpy.literals import scalar
from dmlc.codegen.numpy.names import PythonNames, identifier
from dmlc.codegen.numpy.registry import LOWERINGS, NumpyCall, Style
from dmlc.diagnostics import DmlcError, Label, fail
from dmlc.diagnostics.catalogue import bugs, targets
from dmlc.ir import Dim, Graph, Node, Tensor, Value, dim_names, substitute, symbol
from dmlc.ops import move
from dmlc.ops.constant import CONSTANT, constant_of

#: Most characters and levels of an expression that is written inside another one; most levels of a statement.
_INLINE_WIDTH = 60
_INLINE_DEPTH = 3
_DEPTH = 4

_VIEWS = frozenset((move.RESHAPE, move.TRANSPOSE, move.SQUEEZE, move.UNSQUEEZE, move.EXPAND, move.SPLIT, move.SLICE))


class FunctionBody:
    """The function under construction; lowerings see it as their ``Scope`` protocol.

    ``constants`` and ``supports`` are what the file must also hold, by the names they go under. ``used_dims`` are
    the dims that some expression needs.
    """

    def __init__(self, graph: Graph, style: Style) -> None:
        self.graph = graph
        self.style = style
        self.function: str = identifier(graph.name)
        self.parameters: dict[Value, str] = _parameters(graph)
        taken = {self.function, *self.parameters.values()}
        self.numpy: str = "np" if "np" not in taken else PythonNames(taken).add("_np")
        self.names: PythonNames = PythonNames({*taken, self.numpy})
        self.threads: str = self.names.add("THREADS")
        dims = [d for v in graph.inputs for size in v.shape for d in sorted(dim_names(size))]
        self.dims: dict[str, str] = {d: self.names.local(d) for d in dict.fromkeys(dims)}
        self.used_dims: set[str] = set()
        self.supports: dict[Callable[..., Any], str] = {}
        self.constants: dict[Tensor, str] = {}
        self._locals: dict[Value, str] = {}
        self._pending: dict[Value, Expr] = {}
        self._lines: list[str] = []
        self._indent = INDENT

    # --- what lowerings ask

    def value(self, value: Value, *, inline: bool) -> Expr:
        """A value: its name or, where that is allowed, the short expression that gives it."""
        if value.producer is None:
            return name(self.parameters[value])
        constant = constant_of(value)
        if constant is not None:
            return self._constant(constant, value)
        if value in self._pending:
            if inline:
                return self._pending[value]
            self._assign(self._target(value), self._pending.pop(value))
        return name(self._locals[value])

    def dim(self, dim: Dim) -> Expr:
        """A size, in terms of the sizes of the arguments."""
        if isinstance(dim, int):
            return expr(dim)
        unknown = sorted(dim.names() - self.dims.keys())
        if unknown:
            raise fail(
                bugs.INTERNAL, f"the size {unknown[0]} is not the size of an axis of any input of {self.graph.name}"
            )
        self.used_dims |= dim.names()
        text = str(substitute(dim, {d: symbol(self.dims[d]) for d in dim.names()}))
        for word, function in (("min", "minimum"), ("max", "maximum")):
            if word in self.names and not dim.is_polynomial:
                text = re.sub(rf"\b{word}\(", f"{self.numpy}.{function}(", text)
        return Expr(text, ATOM if dim.name else SUM)

    def support(self, function: Callable[..., Any]) -> str:
        """The name of a support function, which the file will carry."""
        if function not in self.supports:
            self.supports[function] = self.names.add(function.__name__)
        return self.supports[function]

    def may_exceed(self, dim: Dim, most: int) -> bool:
        """Return whether a size may exceed ``most``: it is not proved to be at most that."""
        return self.graph.dims.at_most(dim, most) is not True

    def may_be_zero(self, dim: Dim) -> bool:
        """Return whether a size may be zero: it is not proved to be 1 or more."""
        return self.graph.dims.at_most(1, dim) is not True

    def _constant(self, tensor: Tensor, value: Value) -> Expr:
        if tensor.array.ndim == 0:
            return scalar(tensor.array[()], self.numpy)
        if tensor not in self.constants:
            self.constants[tensor] = self.names.constant(value.name or tensor.note or "constant")
        return name(self.constants[tensor])

    # --- statements

    def lines(self) -> list[str]:
        """The body after the checks, the return statement included. To be asked once."""
        nodes = _live_nodes(self.graph)
        self._name_values(nodes)
        noisy = any(not LOWERINGS[node.op].quiet for node in nodes if node.op in LOWERINGS)
        if noisy:
            self._indent += INDENT
        for node in nodes:
            self._node(node)
        outputs = [self._output(value) for _, value in self.graph.outputs]
        if noisy:
            self._indent -= INDENT
            self._lines.insert(0, f'{" " * self._indent}with {self.numpy}.errstate(all="ignore"):')
        return [*self._lines, *_return(outputs, self._indent)]

    def _name_values(self, nodes: list[Node]) -> None:
        """Users' names first, so that no made-up name takes one; a result takes the output's name."""
        self._uses = {result: 0 for node in nodes for result in node.results}
        for node in [*nodes, self.graph.output]:
            for value in node.operands:
                if value in self._uses:
                    self._uses[value] += 1
        results = [r for node in nodes if node.op is not CONSTANT for r in node.results if self._uses[r]]
        for result in results:
            if result.name:
                self._locals[result] = self.names.local(result.name)
        for output, value in self.graph.outputs:
            if value.producer is not None and value.producer.op is not CONSTANT and value not in self._locals:
                self._locals[value] = self.names.local(output)

    def _target(self, value: Value) -> str:
        """The name a result is assigned to; a made-up one says the operation, or which of its results it is."""
        if not self._uses[value]:
            return "_"
        if value not in self._locals:
            node = value.producer
            assert node is not None
            several = len(node.results) == len(node.op.results) > 1
            self._locals[value] = self.names.local(node.op.results[value.index] if several else node.op.name)
        return self._locals[value]

    def _node(self, node: Node) -> None:
        if node.op is CONSTANT:
            return
        for inline in (True, False):
            lowered = self._lower(node, inline=inline)
            if self._may_wait(node, lowered):
                self._pending[node.result] = lowered
                return
            if lowered.depth <= _DEPTH and self._fits(node, lowered):
                break
        self._assign(", ".join([self._target(r) for r in node.results]), lowered)

    def _lower(self, node: Node, *, inline: bool) -> Expr:
        lowering = LOWERINGS.get(node.op)
        if lowering is None:
            raise _refusal(node)
        return lowering.lower(NumpyCall(self, node, inline=inline))

    def _may_wait(self, node: Node, lowered: Expr) -> bool:
        """Return whether a result is written inside the one expression that uses it: it is short and has no name."""
        short = len(lowered.text) <= _INLINE_WIDTH and lowered.depth <= _INLINE_DEPTH
        only = node.results[0]
        return short and len(node.results) == 1 and only not in self._locals and self._uses[only] == 1

    def _fits(self, node: Node, lowered: Expr) -> bool:
        targets = ", ".join([self._locals.get(r, f"{node.op.name}_2") for r in node.results])
        return fits(f"{' ' * self._indent}{targets} = {lowered.text}")

    def _assign(self, target: str, value: Expr) -> None:
        """A statement, or two where the inner part of a long expression can go first."""
        before = f"{target} = "
        if value.inner is not None and target.isidentifier() and layout(before, value, "", self._indent) is None:
            self._assign(target, value.inner)
            value = Expr(f"{value.around[0]}{target}{value.around[1]}")
        self._lines += statement(before, value, self._indent)

    # --- results

    def _output(self, value: Value) -> Expr:
        """Return a result as an array of its own if it would be a scalar, a constant or a broadcast view."""
        result = self.value(value, inline=False)
        if not value.type.rank:
            return Expr(f"{self.numpy}.asarray({result.text})")
        return method(result, "copy") if _is_not_own(value) else result


def _parameters(graph: Graph) -> dict[Value, str]:
    """The parameters by input; one that can keep its name does."""
    names = PythonNames()
    plain = {v: names.add(v.name) for v in graph.inputs if v.name is not None and identifier(v.name) == v.name}
    return {v: plain[v] if v in plain else names.add(identifier(v.name or "x")) for v in graph.inputs}


def _live_nodes(graph: Graph) -> list[Node]:
    """The nodes that an output needs, in order."""
    live = {v.producer for v in graph.output.operands if v is not None}
    for node in reversed(graph):
        if node in live:
            live.update([v.producer for v in node.operands if v is not None])
    return [node for node in graph if node in live]


def _is_not_own(value: Value) -> bool:
    """Return whether an array shares its memory with a constant, or its elements with each other."""
    node = value.producer
    while node is not None and node.op is not CONSTANT:
        is_identity = getattr(node.attributes, "axes", None) == ()
        if node.op is move.EXPAND:
            return True
        if node.op not in _VIEWS and not is_identity:
            return False
        node = node.operand("x").producer
    return node is not None


def _return(outputs: list[Expr], indent: int) -> list[str]:
    if len(outputs) == 1:
        return statement("return ", outputs[0], indent)
    flat = f"{' ' * indent}return {', '.join([o.text for o in outputs])}"
    return [flat] if outputs and fits(flat) else statement("return ", sequence(outputs), indent)


def _refusal(node: Node) -> DmlcError:
    """NumPy code for a carried ONNX operator would be a guess. E0570."""
    operator = getattr(node.attributes, "op_type", node.op.name)
    domain = getattr(node.attributes, "domain", "")
    full = f"onnx.{domain}.{operator}" if domain else f"onnx.{operator}"
    return fail(
        targets.NO_NUMPY_CODE,
        f"there is no NumPy code for {full}",
        *[Label(span, "carried through to ONNX as it is") for span in node.spans[:1]],
        help="emit ONNX, or write it with the language's own operations",
    )
