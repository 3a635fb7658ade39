"""Fed arrays, held against a model's signature: names, dtypes, shapes, the bounds of dims, relations of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any

import numpy as np

from dmlc.codegen.artifact import Signature
from dmlc.diagnostics import Diagnostic, DmlcError, did_you_mean, option, sentences
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.ir import Array, Dim, ForeignType, TensorType, as_dtype, evaluate
from dmlc.ir.dim import DimExpr, Interval
from dmlc.ops.ranges import broken_by, range_text


class FeedChecker:
    """Checks what is fed to one model, again and again: shapes that were checked last time are not checked anew."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self._dtypes = [(name, type_.dtype.numpy) for name, type_ in signature.inputs]
        self._shapes: tuple[tuple[int, ...], ...] | None = None
        self._binding: dict[str, int] = {}

    def check_ranges(self, feeds: Mapping[str, Any]) -> None:
        """Hold each array against the range that its input promises. Raises ``DmlcError`` E0445 for each that breaks
        it; what else is wrong ``check`` finds."""
        problems = []
        for name, promised in self.signature.ranges.items():
            array = feeds.get(name)
            found = broken_by(np.asarray(array), promised) if array is not None else ""
            if found:
                message = f"input {name} holds {found}, and it promises {range_text(promised)}"
                problems.append(
                    Diagnostic(codes.BROKEN_RANGE, message, help="give values within the range, or widen it")
                )
        if problems:
            raise DmlcError(problems)

    def check(self, feeds: Mapping[str, Any]) -> dict[str, Array]:
        """The arrays by input name, in the order of the signature.

        Python's numbers and lists are converted where every value fits. Raises ``DmlcError``, one diagnostic for
        each mistake: E0423 names, E0424 dtypes, E0425 shapes and bounds, E0426 relations between sizes.
        """
        if not isinstance(feeds, Mapping):
            message = f"inputs are given as a dict of arrays by name, not {type(feeds).__name__}"
            raise DmlcError(Diagnostic(codes.INPUT_NAMES, message))
        arrays: dict[str, Array] = {}
        problems: list[Diagnostic] = []
        for name, dtype in self._dtypes:
            value = feeds.get(name)
            if type(value) is np.ndarray and value.dtype == dtype:
                arrays[name] = value
        if len(arrays) != len(self._dtypes) or len(feeds) != len(arrays):
            arrays = self._converted(feeds, problems)
        shapes = tuple([getattr(array, "shape", ()) for array in arrays.values()])
        if problems or shapes != self._shapes:
            binding = bind_dims(self.signature, arrays, problems)
            if problems:
                raise DmlcError(problems)
            self._shapes, self._binding = shapes, binding
        return arrays

    @property
    def binding(self) -> dict[str, int]:
        """The sizes of the dims in what was checked last."""
        return self._binding

    def _converted(self, feeds: Mapping[str, Any], problems: list[Diagnostic]) -> dict[str, Array]:
        arrays: dict[str, Array] = {}
        problems.extend(unknown_inputs(self.signature, feeds))
        for name, type_ in self.signature.inputs:
            if name not in feeds:
                if name in self.signature.optional:
                    continue
                message = f"input {name} is not given: it is {type_}"
                problems.append(Diagnostic(codes.INPUT_NAMES, message, help=_feeding(name)))
                continue
            found = _array(name, type_, feeds[name])
            if isinstance(found, Diagnostic):
                problems.append(found)
            else:
                arrays[name] = found
        return arrays


def unknown_inputs(signature: Signature, given: Iterable[str]) -> list[Diagnostic]:
    """A diagnostic E0423 for each of the given names that no input has."""
    names = [name for name, _ in signature.inputs]
    has = f"it has {', '.join(names)}" if names else "it has none"
    return [
        Diagnostic(
            codes.INPUT_NAMES, f"the model has no input {name}", help=sentences(did_you_mean(str(name), names), has)
        )
        for name in given
        if name not in names
    ]


def _feeding(name: str) -> str:
    return option(f"--input {name}=FILE, or --random SEED", f"give {{{name!r}: array}}")


def _array(name: str, type_: TensorType, value: object) -> Array | Diagnostic:
    """The value in the declared dtype, or the mistake in it. A value without a type in the language passes."""
    if isinstance(type_, ForeignType):
        return value  # type: ignore[return-value]
    wanted = type_.dtype.numpy
    if isinstance(value, np.ma.MaskedArray):
        message = f"input {name}: expected {type_}, got a masked array, whose mask would be lost"
        return Diagnostic(codes.FED_DTYPE, message, help=f"fill it: {name}.filled(0)")
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        return Diagnostic(codes.FED_SHAPE, f"input {name}: expected {type_}, got lists of different lengths")
    if array.dtype.newbyteorder("=") == wanted:
        return array.astype(wanted, copy=False)
    if isinstance(value, (bool, int, float, list, tuple)) and _fits(array, wanted):
        with np.errstate(over="ignore"):
            return array.astype(wanted)
    try:
        got = str(TensorType(as_dtype(array.dtype), array.shape))
    except KeyError:
        got = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
    message = f"input {name}: expected {type_}, got {got}"
    help = {
        "c": f"give its real part: {name}.real.astype(np.{wanted})",
        "O": "give an array of numbers",
        "U": "give an array of numbers",
    }
    instead = help.get(array.dtype.kind, f"convert it, such as {name}.astype(np.{wanted})")
    return Diagnostic(codes.FED_DTYPE, message, help=instead)


def _fits(numbers: Array, wanted: np.dtype[Any]) -> bool:
    """Return whether Python numbers fit the dtype: integers in range, booleans only for booleans."""
    if numbers.size == 0:
        return True
    kind = numbers.dtype.kind
    if kind == "b" or wanted.kind == "b":
        return kind == wanted.kind
    if kind in "iu":
        if wanted.kind == "f":
            return True
        limits = np.iinfo(wanted)
        return bool(int(numbers.min()) >= limits.min and int(numbers.max()) <= limits.max)
    return kind == "f" and wanted.kind == "f"


def truth_values(array: Array) -> Array:
    """Return bytes of 0 and 1 as bools, which is how DxDispatch and files for it hold them; other arrays unchanged."""
    if array.dtype not in (np.int8, np.uint8) or not np.isin(array, (0, 1)).all():
        return array
    return array.astype(bool)


# --- dims


def bind_dims(signature: Signature, arrays: Mapping[str, Array], problems: list[Diagnostic]) -> dict[str, int]:
    """The sizes of the dims; what does not fit is added to ``problems``."""
    binding: dict[str, int] = {}
    first: dict[str, str] = {}
    before = len(problems)
    for name, type_ in signature.inputs:
        array = arrays.get(name)
        if array is None or isinstance(type_, ForeignType):
            continue
        if array.ndim != type_.rank:
            problems.append(_shape_problem(name, type_, array, f"rank {type_.rank} is declared, {array.ndim} is given"))
            continue
        for axis, (size, got) in enumerate(zip(type_.shape, array.shape, strict=True)):
            if isinstance(size, int):
                if size != got:
                    problems.append(_shape_problem(name, type_, array, f"axis {axis} has size {got}, not {size}"))
            elif size.name is not None:
                place = f"axis {axis} of {name}"
                if binding.setdefault(size.name, got) != got:
                    text = f"dim {size} is {binding[size.name]} in {first[size.name]}, but {got} in {place}"
                    problems.append(_shape_problem(name, type_, array, text))
                first.setdefault(size.name, place)
    if len(problems) == before and len(arrays) >= len(signature.inputs) - len(signature.optional):
        _check_sizes(signature, arrays, binding, problems)
    return binding


def _shape_problem(name: str, type_: TensorType, array: Array, text: str) -> Diagnostic:
    got = str(type_.with_shape(array.shape))
    return Diagnostic(codes.FED_SHAPE, f"input {name}: expected {type_}, got {got}: {text}")


def _check_sizes(
    signature: Signature, arrays: Mapping[str, Array], binding: Mapping[str, int], problems: list[Diagnostic]
) -> None:
    for name, size in binding.items():
        interval = signature.bounds.get(name, (1, inf))
        if not interval[0] <= size <= interval[1]:
            message = f"dim {name} is {size}, it must be {bounds_text(interval)}"
            problems.append(Diagnostic(codes.FED_SHAPE, message))
    for name, type_ in signature.inputs:
        if name not in arrays:
            continue
        for axis, declared in enumerate(type_.shape):
            if isinstance(declared, DimExpr) and declared.name is None:
                want, got = evaluate(declared, binding), arrays[name].shape[axis]
                if want != got:
                    text = f"axis {axis} has size {got}, not {declared} = {want}"
                    problems.append(_shape_problem(name, type_, arrays[name], text))
    problems.extend(broken_conditions(signature, binding))


def broken_conditions(signature: Signature, binding: Mapping[str, int]) -> list[Diagnostic]:
    """A diagnostic for each relation that does not hold. One of a dim that no input binds, as of what an operator of an
    imported model gives, is passed over."""
    out = []
    for condition in signature.conditions:
        if not _names(condition.left, condition.right) <= binding.keys():
            continue
        left, right = evaluate(condition.left, binding), evaluate(condition.right, binding)
        if not condition.holds(left, right):
            values = ", ".join(f"{name} is {binding[name]}" for name in sorted(_names(condition.left, condition.right)))
            message = f"{condition} does not hold: {values}"
            out.append(Diagnostic(codes.FED_CONDITION, message, help=condition.why))
    return out


def _names(*dims: Dim) -> set[str]:
    return {name for dim in dims if isinstance(dim, DimExpr) for name in dim.names()}


def bounds_text(interval: Interval) -> str:
    """``1 to 64`` or ``8 or more``."""
    low, high = interval
    return f"{low} or more" if high == inf else f"{low} to {high}"
