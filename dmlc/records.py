"""``dataclass`` as in the standard library, at a tenth of its price: what it generates is made when it is first used.

The standard decorator compiles six functions for a frozen class, a millisecond for each class that a command loads and
perhaps never makes. Here ``__init__`` is made when a class is first called, fields are looked at when they are first
asked for, and comparing, hashing and showing need no code of their own. ``dataclasses.fields``, ``replace`` and
``asdict`` work as ever.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from types import CellType, CodeType, FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, eq=True, slots=False, kw_only=False):
        """As ``dataclasses.dataclass``; ``frozen`` classes refuse every attribute, fields or not."""

        def made(cls):
            given = _methods(vars(cls), frozen=frozen, eq=eq, slots=slots)
            return _slotted(cls, given, kw_only) if slots else _plain(cls, given, kw_only)

        return made if cls is None else made(cls)


_Record = TypeVar("_Record")


def unguarded(cls: type[_Record]) -> type[_Record]:
    """A frozen record that only type checkers keep from being changed: it is made in a third of the time.

    For what is made by the hundred thousand: places and the nodes of syntax trees.
    """
    del cls.__setattr__, cls.__delattr__
    return cls


class _LazyMember:
    """An attribute of a class that is made from the class when it is first asked for."""

    def __init__(self, make: Callable[[Any], Any]) -> None:
        self.make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        value = self.make(self.owner)
        setattr(self.owner, self.name, value)
        bind = getattr(value, "__get__", None)
        return value if bind is None else bind(instance, owner)


def _methods(own: Any, *, frozen: bool, eq: bool, slots: bool) -> dict[str, Any]:
    """Return the methods that a class gets besides its own."""
    given: dict[str, Any] = {"__init__": _LazyMember(_init), "__repr__": _repr}
    if eq:
        given["__eq__"] = _LazyMember(_equal)
        given["__hash__"] = _LazyMember(_hash) if frozen else None
    if frozen and slots:  # copying and pickling set attributes otherwise
        given |= {"__getstate__": _state, "__setstate__": _set_state}
    # beside an __eq__ Python puts a __hash__ that is None
    kept = {name: value for name, value in given.items() if name not in own or (name, own[name]) == ("__hash__", None)}
    return {**kept, "__setattr__": _refuse_set, "__delattr__": _refuse_delete} if frozen else kept


def _plain(cls: type, given: dict[str, Any], kw_only: bool) -> type:
    for name, value in given.items():
        setattr(cls, name, value)
        if isinstance(value, _LazyMember):
            value.__set_name__(cls, name)
    return _read(cls, kw_only)


def _slotted(cls: type, given: dict[str, Any], kw_only: bool) -> type:
    """The class anew, with slots for its own fields; the first one stays, to read the fields from."""
    kinds: dict[str, object] = vars(cls).get("__annotations__", {})
    fields = [name for name, kind in kinds.items() if not str(kind).startswith("ClassVar")]
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base).get("__slots__", ())}
    namespace = {k: v for k, v in vars(cls).items() if k not in fields and k not in ("__dict__", "__weakref__")}
    namespace |= given
    namespace["__slots__"] = tuple([name for name in fields if name not in inherited])
    namespace["__dataclass_params__"] = _PARAMETERS
    for name in ("__dataclass_fields__", "__match_args__"):
        namespace[name] = _LazyMember(_reading(cls, kw_only, name))
    out = type(cls)(cls.__name__, cls.__bases__, namespace)
    out.__qualname__ = cls.__qualname__
    return out


def _reading(cls: type, kw_only: bool, name: str) -> Callable[[Any], Any]:
    return lambda _: getattr(_read(cls, kw_only), name)


def _read(cls: type, kw_only: bool) -> type:
    """The class as the standard decorator leaves it where there is no method to make: with its fields."""
    if "__dataclass_fields__" in vars(cls):
        return cls
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # or it would work out a signature
    return dataclasses.dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(cls)


class _Nothing:
    """No fields."""


_PARAMETERS = getattr(_read(_Nothing, False), "__dataclass_params__")  # noqa: B009


# --- making instances


def _init(cls: type[Any]) -> Any:
    """``__init__`` of the class's fields. Frozen ones are set through the slots' descriptors: that is quickest."""
    fields = dataclasses.fields(cls)
    slots: list[Any] = [getattr(cls, field.name, None) for field in fields]
    is_simple = all(field.init and field.default_factory is dataclasses.MISSING for field in fields)
    if not is_simple or hasattr(cls, "__post_init__") or not all(isinstance(s, MemberDescriptorType) for s in slots):
        return _written_init(cls)
    ordered = sorted(zip(fields, slots, strict=True), key=lambda pair: bool(pair[0].kw_only))
    names = tuple([field.name for field, _ in ordered])
    keywords = sum(bool(field.kw_only) for field in fields)
    frozen = vars(cls).get("__setattr__") is _refuse_set
    code = _template(len(fields) - keywords, keywords, frozen).replace(co_varnames=("self", *names))
    code = code if frozen else code.replace(co_names=names)
    cells = tuple([CellType(slot.__set__) for _, slot in ordered]) if frozen else ()
    defaults = {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}
    places = tuple([defaults[name] for name in names[: len(fields) - keywords] if name in defaults])
    init = FunctionType(code, {}, "__init__", places, cells)
    init.__kwdefaults__ = {name: defaults[name] for name in names[len(fields) - keywords :] if name in defaults}
    return init


@cache
def _template(places: int, keywords: int, frozen: bool) -> CodeType:
    """The code of an ``__init__`` with so many parameters; what is frozen is set with a function for each."""
    count = places + keywords
    parameters = [f"p{n:02}" for n in range(count)]
    if keywords:
        parameters.insert(places, "*")
    setters = ", ".join([f"s{n:02}" for n in range(count)])
    lines = [f"s{n:02}(self, p{n:02})" if frozen else f"self.a{n:02} = p{n:02}" for n in range(count)]
    body = "".join([f"  {line}\n" for line in lines or ["pass"]])
    names: dict[str, Any] = {}
    exec(f"def made({setters}):\n def init({', '.join(['self', *parameters])}):\n{body} return init", names)
    code: CodeType = names["made"](*[None] * count).__code__
    return code


def _written_init(cls: type[Any]) -> Any:
    """The same for any class, compiled for it."""
    names: dict[str, object] = {"_absent": dataclasses.MISSING, "_set": object.__setattr__}
    places: list[str] = []
    keywords: list[str] = []
    body: list[str] = []
    for field in dataclasses.fields(cls):
        name, value, absent = field.name, field.name, ""
        if field.default_factory is not dataclasses.MISSING:
            names[f"_new_{name}"] = field.default_factory
            value = f"_new_{name}() if {name} is _absent else {name}" if field.init else f"_new_{name}()"
            absent = " = _absent"
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            value = name if field.init else f"_default_{name}"
            absent = f" = _default_{name}"
        if field.init:
            (keywords if field.kw_only else places).append(f"{name}{absent}")
        elif not absent:
            continue
        slot = getattr(cls, name, None)
        if isinstance(slot, MemberDescriptorType):
            names[f"_set_{name}"] = slot.__set__
            body.append(f"_set_{name}(self, {value})")
        else:
            body.append(f"_set(self, {name!r}, {value})")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = ", ".join(["self", *places, *(["*", *keywords] if keywords else [])])
    exec(f"def __init__({parameters}):\n " + "\n ".join(body or ["pass"]), names)
    return names["__init__"]


# --- comparing and showing


def _key(cls: type[Any]) -> Callable[[object], object]:
    """Return a function to a tuple by which two records are compared; identical objects are equal, NaN too."""
    names = [field.name for field in dataclasses.fields(cls) if field.compare]
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda self: ()
    get = attrgetter(names[0])
    return lambda self: (get(self),)


def _equal(cls: type[Any]) -> object:
    key = _key(cls)

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or key(self) == key(other)

    return __eq__


def _hash(cls: type[Any]) -> object:
    if not any(field.compare for field in dataclasses.fields(cls)):
        own = hash(cls.__qualname__)  # by () all such records would be of one hash, and a dict of them a list
        return lambda self: own
    key = _key(cls)

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(key(self))

    return __hash__


def _repr(self: Any) -> str:
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


# --- keeping what is frozen


def _refuse_set(self: object, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
