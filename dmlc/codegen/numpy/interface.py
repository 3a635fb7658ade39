"""The outside of the generated function: its parameters, its docstring, and the checks of its arguments."""

from __future__ import annotations

from math import inf

from dmlc.codegen.artifact import signature_of
from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.body import FunctionBody
from dmlc.codegen.numpy.expr import Expr, call, infix, message, name
from dmlc.codegen.numpy.layout import INDENT, definition, fits, statement
from dmlc.codegen.numpy.literals import dtype_expr
from dmlc.ir import Condition, TensorType, Value, dim_names, symbol
from dmlc.ir.dim import Interval
from dmlc.ir.printer import number_text
from dmlc.ops.ranges import declared_range, range_text

_MOST_RETURNS = 4


def clean(text: str) -> str:
    """User's text as part of a string literal or a docstring."""
    swapped = text.replace('"', "'").replace("{", "(").replace("}", ")").replace("\\", "/")
    return "".join(c if c.isprintable() else "?" for c in swapped)


# --- the signature


def signature_lines(body: FunctionBody) -> list[str]:
    """``def model(x: np.ndarray) -> np.ndarray:``, with one parameter a line where it is long."""
    array = f"{body.numpy}.ndarray"
    count = len(body.graph.outputs)
    arrays = ", ".join([array] * count) if 0 < count <= _MOST_RETURNS else f"{array}, ..."
    result = array if count == 1 else f"tuple[{arrays}]"
    items = [f"{parameter}: {array}" for parameter in body.parameters.values()]
    if body.graph.ranges:
        items += ["*", f"{_range_flag(body)}: bool = False"]
    return definition(body.function, items, f" -> {result}", 0)


def _range_flag(body: FunctionBody) -> str:
    """The name of the parameter that asks for the check of promised ranges."""
    return "check_ranges_" if "check_ranges" in body.parameters.values() else "check_ranges"


# --- the docstring


def _type_text(type: TensorType) -> str:
    sizes = ", ".join([clean(str(d)) for d in type.shape])
    return f"{type.dtype.long_name}, shape ({sizes}{',' if type.rank == 1 else ''})"


def _bound_text(dim: str, interval: Interval) -> str:
    low, high = interval
    return f"{clean(dim)} >= {low}" if high == inf else f"{low} <= {clean(dim)} <= {high}"


def docstring_lines(body: FunctionBody) -> list[str]:
    """Return the docstring of the function: parameters and results in NumPy's form."""
    graph = body.graph
    lines = [f'"""Model `{clean(graph.name)}`.']
    if graph.inputs:
        lines += ["", "Parameters", "----------"]
    for value in graph.inputs:
        parameter = body.parameters[value]
        alias = "" if parameter == value.name else f" (input `{clean(value.name or '')}`)"
        lines.append(f"{parameter} : {_type_text(value.type)}{alias}")
    if graph.outputs:
        lines += ["", "Returns", "-------"]
    lines += [f"{clean(output)} : {_type_text(value.type)}" for output, value in graph.outputs]
    notes = [clean(f"{name} in {range_text(promised)}") for name, promised in graph.ranges.items()]
    notes += [_bound_text(d, graph.dims.interval(symbol(d))) for d in body.dims]
    notes += [clean(str(condition)) for condition in signature_of(graph, checked=True).conditions]
    if notes:
        lines += ["", "Notes", "-----", *notes]
    margin = " " * INDENT
    return [*[f"{margin}{line}".rstrip() for line in lines], f'{margin}"""']


# --- the checks


class Checks:
    """Checks the arguments and binds the dims; written after the body, whose expressions say which dims it needs."""

    def __init__(self, body: FunctionBody) -> None:
        self.body = body
        self.places: dict[str, str] = {}  # dim -> "axis 0 of x"
        self._blocks: list[tuple[list[str], Value, dict[str, int]]] = []
        self._later: list[str] = []

    def lines(self) -> list[str]:
        """All checks. To be asked once."""
        open_sizes = [self._input(value) for value in self.body.graph.inputs]
        for dim in self.places:
            self._bounds(dim)
        for value, axes in zip(self.body.graph.inputs, open_sizes, strict=True):
            for axis in axes:
                self._size(value, axis)
        for condition in signature_of(self.body.graph, checked=True).conditions:
            self._condition(condition)
        out: list[str] = []
        for check, value, new in self._blocks:
            out += check + self._binding(value, new)
        return out + self._later + self._ranges()

    def _ranges(self) -> list[str]:
        """The check of the promised ranges, where it is asked for."""
        body, lines = self.body, []
        for value in body.graph.inputs:
            promised = declared_range(body.graph, value)
            if promised is not None:
                ends = [name(text.replace("inf", f"{body.numpy}.inf")) for text in map(number_text, promised)]
                parameter = body.parameters[value]
                check = call(body.support(support._check_range), parameter, name(parameter), *ends)
                lines += statement("", check, 2 * INDENT)
        return [f"{' ' * INDENT}if {_range_flag(body)}:", *lines] if lines else []

    def _input(self, value: Value) -> list[int]:
        """The check of one argument; the axes whose sizes are known only when all dims are bound."""
        body, parameter = self.body, self.body.parameters[value]
        sizes: list[Expr | str | int] = []
        new: dict[str, int] = {}
        left = []
        for axis, size in enumerate(value.shape):
            if isinstance(size, int):
                sizes.append(size)
            elif size.names() <= self.places.keys():
                sizes.append(body.dim(size))
            else:
                sizes.append(clean(str(size)))
                if size.name is not None and size.name not in new:
                    new[size.name] = axis
                else:
                    left.append(axis)
        self.places.update({dim: f"axis {axis} of {parameter}" for dim, axis in new.items()})
        function = body.support(support._check)
        kind = dtype_expr(value.type.dtype, body.numpy)
        check = call(function, parameter, name(parameter), kind, tuple(sizes))
        self._blocks.append((statement("", check, INDENT), value, new))
        return left

    def _binding(self, value: Value, new: dict[str, int]) -> list[str]:
        """``batch, _, channels = x.shape`` with the dims that are used."""
        body, parameter = self.body, self.body.parameters[value]
        used = {axis: body.dims[dim] for dim, axis in new.items() if dim in body.used_dims}
        margin = " " * INDENT
        names = ", ".join([used.get(axis, "_") for axis in range(value.type.rank)])
        together = f"{margin}{names} = {parameter}.shape"
        if len(used) > 1 and fits(together):
            return [together]
        lines = [statement(f"{dim} = ", name(f"{parameter}.shape[{axis}]"), INDENT) for axis, dim in used.items()]
        return [line for part in lines for line in part]

    def _require(self, holds: Expr, text: str) -> None:
        function = self.body.support(support._require)
        self._later += statement("", call(function, holds, message(text)), INDENT)

    def _bounds(self, dim: str) -> None:
        low, high = self.body.graph.dims.interval(symbol(dim))
        if low <= 0 and high == inf:
            return
        size = self.body.dim(symbol(dim)).text
        if high == inf:
            holds, text = f"{size} >= {low}", f"{low} or more"
        elif low == high:
            holds, text = f"{size} == {low}", f"{low}"
        elif low <= 0:
            holds, text = f"{size} <= {high}", f"{high} or less"
        else:
            holds, text = f"{low} <= {size} <= {high}", f"{low} to {high}"
        self._require(Expr(holds), f"{clean(dim)} ({self.places[dim]}) must be {text}, not {{{size}}}")

    def _size(self, value: Value, axis: int) -> None:
        """A size that the dims of other arguments decide."""
        parameter = self.body.parameters[value]
        wanted = self.body.dim(value.shape[axis])
        have = f"{parameter}.shape[{axis}]"
        text = f"axis {axis} of {parameter} must be {clean(str(value.shape[axis]))} = {{{wanted.text}}}, not {{{have}}}"
        self._require(infix("==", name(have), wanted), text)

    def _condition(self, condition: Condition) -> None:
        left, right = self.body.dim(condition.left), self.body.dim(condition.right)
        dims = sorted(dim_names(condition.left) | dim_names(condition.right))
        where = ", ".join([f"{clean(d)} = {{{self.body.dims[d]}}} ({self.places[d]})" for d in dims])
        parts = [f"{clean(str(condition))} does not hold", *([f" for {where}"] if where else [])]
        self._require(infix(condition.relation, left, right), "".join(parts) + f": {clean(condition.why)}")
