"""Shapes that the user fixes: the dims that they bind, and where they contradict what the inputs declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from math import prod
from typing import TypeAlias

from msgspec import Struct, field

from dmlc.diagnostics import DmlcError, Label, Span, did_you_mean, fail, option, sentences
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.given import integer_of
from dmlc.ir.dim import Dim, dim_names, evaluate, substitute

#: The sizes of an input; None leaves a size as it is declared.
FixedShape: TypeAlias = "tuple[int | None, ...]"
#: The largest size, and the largest number of elements, that an ONNX model can hold.
LARGEST_SIZE = 2**63 - 1


def is_too_large(shape: Sequence[Dim]) -> bool:
    """Return whether no tensor has this shape: a size, or the number of elements, is above ``LARGEST_SIZE``."""
    sizes = [size for size in shape if isinstance(size, int)]
    return max(*sizes, prod(sizes)) > LARGEST_SIZE if sizes else False


class DeclaredInput(Struct, frozen=True):
    """An input as it is declared: its sizes, None for one that is open and has no name; no sizes if the rank is open.

    ``default`` is the shape of its default, which stays.
    """

    sizes: tuple[Dim | None, ...] | None
    span: Span | None = None
    default: tuple[int, ...] | None = None

    @property
    def labels(self) -> list[Label]:
        return [Label(self.span)] if self.span else []


def checked_shapes(shapes: Mapping[str, Sequence[int | None]] | None) -> dict[str, FixedShape]:
    """The shapes as tuples of Python integers and None. Raises ``DmlcError`` E0337 (exit code 2) for
    anything else."""
    out = {}
    if shapes is not None and not isinstance(shapes, Mapping):
        raise _misuse(f"shapes is a dict of shapes by the names of inputs, not {type(shapes).__name__}")
    for name, shape in (shapes or {}).items():
        if isinstance(shape, (str, bytes, Mapping, Set)):
            raise _misuse(f"the shape of {name} is {shape!r}")
        try:
            given = list(shape)
        except TypeError:
            raise _misuse(f"the shape of {name} is {shape!r}") from None
        sizes = [integer_of(size) for size in given]
        for size, wanted in zip(sizes, given, strict=True):
            if size is not None and size > LARGEST_SIZE:
                raise _misuse(f"the shape of {name} has the size {size}, and the largest is 2**63 - 1 ({LARGEST_SIZE})")
            if (size is None and wanted is not None) or (size is not None and size < 0):
                raise _misuse(f"the shape of {name} is {given}")
        out[name] = tuple(sizes)
    return out


def _misuse(text: str) -> DmlcError:
    help = f"a shape is a list of sizes of 0 or more; {option('_', 'None')} leaves a size open"
    return fail(codes.SHAPE_DOES_NOT_FIT, text, help=help, exit_code=2)


def shape_option(name: str, shape: FixedShape | None = None) -> str:
    """The option that fixes a shape: ``--shape x=1,_`` or ``shapes={'x': (1, None)}``; ``...`` for its sizes if it is
    None."""
    if shape is None:
        return option(f"--shape {name}=...", f"shapes={{{name!r}: ...}}")
    return option(f"--shape {shape_text(name, shape)}", f"shapes={{{name!r}: {tuple(shape)!r}}}")


def bind_options(names: Iterable[str]) -> str:
    """The options that bind dims: ``--bind N=... --bind M=...`` or ``bind={'N': ..., 'M': ...}``."""
    listed = list(names)
    keyword = f"bind={{{', '.join(f'{name!r}: ...' for name in listed)}}}" if listed else ""
    return option(" ".join(f"--bind {name}=..." for name in listed), keyword)


def shape_text(name: str, shape: FixedShape) -> str:
    """The shape as the command line takes it."""
    return f"{name}={','.join('_' if size is None else str(size) for size in shape)}"


def bound_dims(
    inputs: Mapping[str, DeclaredInput], shapes: Mapping[str, FixedShape], binding: Mapping[str, int]
) -> dict[str, int]:
    """Return ``binding`` with the dims that ``shapes`` fix.

    Raises ``DmlcError`` E0337 where there is no such input, where it has another rank or size, and where a dim would
    have two sizes.
    """
    if not shapes:
        return dict(binding)
    found = _BoundDims(dict(binding), {name: f"{name}={size}" for name, size in binding.items()})
    pairs = [pair for name, shape in shapes.items() for pair in _axes(inputs, name, shape)]
    waiting = pairs
    while waiting:  # an expression of several dims has to wait for the others
        left = [pair for pair in waiting if not found.take(pair)]
        if len(left) == len(waiting):
            raise left[0].unsolved(found.sizes)
        waiting = left
    for pair in pairs:
        pair.check(found)
    return found.sizes


class _FixedAxis(Struct, frozen=True):
    """A size that is given for an axis whose declared size is known, by a number or by names."""

    input: str
    shape: FixedShape
    axis: int
    declared: Dim
    given: int
    source: DeclaredInput

    @property
    def text(self) -> str:
        return shape_text(self.input, self.shape)

    def unsolved(self, sizes: Mapping[str, int]) -> DmlcError:
        names = sorted(dim_names(self.declared) - sizes.keys())
        message = f"{self.text}: no one size of {', '.join(names)} makes {self.declared} {self.given}"
        help = f"bind {'it' if len(names) == 1 else 'them'}: {bind_options(names)}"
        return fail(codes.SHAPE_DOES_NOT_FIT, message, *self.source.labels, help=help)

    def check(self, found: _BoundDims) -> None:
        """Raises ``DmlcError`` E0337 where the axis has another size."""
        size = evaluate(self.declared, found.sizes)
        if size == self.given:
            return
        if isinstance(self.declared, int):
            message = f"{self.text} gives axis {self.axis} the size {self.given}, and {self.input} has {size} there"
            raise fail(codes.SHAPE_DOES_NOT_FIT, message, *self.source.labels, help=self._with(size))
        name = getattr(self.declared, "name", None)
        first = ", ".join(found.origin[n] for n in sorted(dim_names(self.declared)))
        wanted = f"{name} is" if name else f"{self.declared} is"
        message = f"{wanted} {size} by {first}, and {self.given} by axis {self.axis} of {self.text}"
        raise fail(codes.SHAPE_DOES_NOT_FIT, message, *self.source.labels, help=self._with(size))

    def _with(self, size: int) -> str:
        open_shape = (*self.shape[: self.axis], None, *self.shape[self.axis + 1 :])
        return f"write {size} there, or keep it dynamic: {shape_option(self.input, open_shape)}"


class _BoundDims(Struct):
    """Dims with their sizes, and the text that gave each its size."""

    sizes: dict[str, int]
    origin: dict[str, str] = field(default_factory=dict)

    def take(self, axis: _FixedAxis) -> bool:
        """Bind the one dim that an axis leaves open; false where it leaves more open, or none makes that size."""
        rest = substitute(axis.declared, self.sizes)
        if isinstance(rest, int):
            return True
        names = dim_names(rest)
        if len(names) != 1:
            return False
        (name,) = names
        size = _solution(rest, name, axis.given)
        if size is None:
            return False
        self.sizes[name] = size
        self.origin[name] = axis.text
        return True


def _solution(size: Dim, name: str, wanted: int) -> int | None:
    """The one value of the dim that makes a linear ``size`` the wanted one."""
    try:
        first, second = evaluate(size, {name: 0}), evaluate(size, {name: 1})
    except ZeroDivisionError:
        return None
    step = second - first
    if not getattr(size, "is_polynomial", True) or step == 0 or (wanted - first) % step:
        return None
    found = (wanted - first) // step
    return found if found >= 0 and evaluate(size, {name: found}) == wanted else None


def _axes(inputs: Mapping[str, DeclaredInput], name: str, shape: FixedShape) -> Iterator[_FixedAxis]:
    source = inputs.get(name)
    if source is None:
        has = f"its inputs are {', '.join(inputs)}" if inputs else "it has no inputs"
        help = sentences(did_you_mean(name, inputs), has)
        raise fail(codes.SHAPE_DOES_NOT_FIT, f"the model has no input {name}", help=help)
    declared = source.sizes
    for known, what in ((declared, name), (source.default, f"the default of {name}")):
        if known is not None and len(known) != len(shape):
            sizes = ", ".join("_" if size is None else str(size) for size in known)
            message = f"{shape_text(name, shape)} has {counted(len(shape), 'size')}, and {what} has "
            help = f"{option('_', 'None')} leaves a size open: {shape_option(name, (None,) * len(known))}"
            message += f"{counted(len(known), 'axis')}: [{sizes}]"
            raise fail(codes.SHAPE_DOES_NOT_FIT, message, *source.labels, help=help)
    for axis, given in enumerate(shape):
        if given is None:
            continue
        if source.default is not None and source.default[axis] != given:
            message = f"{shape_text(name, shape)} gives axis {axis} the size {given}"
            message += f", and the default of {name} has {source.default[axis]} there"
            help = f"a default stays in the model: write its size, or keep it dynamic by {option('_', 'None')}"
            raise fail(codes.SHAPE_DOES_NOT_FIT, message, *source.labels, help=help)
        size = None if declared is None else declared[axis]
        if size is not None:
            yield _FixedAxis(name, shape, axis, size, given, source)
