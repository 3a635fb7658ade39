"""Records behave as the standard library's do; only when their methods are made is different."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field, fields, replace
from typing import Any, ClassVar

import pytest

from dmlc import records


def classes(dataclass: Any) -> list[type]:
    """The same classes by one decorator or the other."""

    @dataclass(frozen=True, slots=True)
    class Frozen:
        """Said."""

        kind: ClassVar[str] = "frozen"
        a: int
        b: list[int] = field(default_factory=list, compare=False)
        c: str = field(default="x", repr=False)
        d: int = field(default=7, init=False)

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Keywords(Frozen):
        e: float = 1.5
        f: float

    @dataclass(slots=True)
    class Open:
        a: int
        b: int = 2

        def __post_init__(self) -> None:
            self.b += self.a

    @dataclass(frozen=True)
    class Plain:
        a: int = 1

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Plain) and other.a % 2 == self.a % 2

        def __hash__(self) -> int:
            return self.a % 2

    @dataclass(slots=True, eq=False)
    class Itself:
        a: int = 1

    @dataclass(frozen=True, slots=True)
    class Empty:
        """Nothing."""

    return [Frozen, Keywords, Open, Plain, Itself, Empty]


OURS, STANDARD = classes(records.dataclass), classes(dataclasses.dataclass)
Made = Callable[[type[Any]], Any]
MAKERS: list[tuple[int, Made]] = [
    (0, lambda c: c(1)),
    (0, lambda c: c(1, [2], "y")),
    (0, lambda c: c(a=1, c="z")),
    (1, lambda c: c(1, f=2.0)),
    (1, lambda c: c(a=1, f=2.0, e=3)),
    (2, lambda c: c(1)),
    (2, lambda c: c(1, b=5)),
    (3, lambda c: c()),
    (3, lambda c: c(3)),
    (4, lambda c: c()),
    (5, lambda c: c()),
]


def seen(act: Callable[[], object]) -> object:
    """The result; of a failure the kind."""
    try:
        return act()
    except Exception as error:
        return type(error)


@pytest.mark.parametrize(("which", "make"), MAKERS)
def test_an_instance_is_as_the_standard_one(which: int, make: Made) -> None:
    ours, standard = make(OURS[which]), make(STANDARD[which])
    for look in (
        repr,
        dataclasses.asdict,
        lambda r: [f.name for f in fields(r)],
        lambda r: type(r).__match_args__,
        lambda r: r == make(type(r)),
        lambda r: r == replace(r, a=2),
        lambda r: r.__eq__(0),
        lambda r: copy.deepcopy(r).a,
        lambda r: setattr(r, "a", 3),
        lambda r: delattr(r, "a"),
        lambda r: {r: 1}[make(type(r))] if type(r).__name__ != "Itself" else 0,
    ):
        if which == 5 and look is not repr:
            continue
        a, b = seen(lambda: look(ours)), seen(lambda: look(standard))  # noqa: B023
        assert a == b


@pytest.mark.parametrize(
    ("which", "make"),
    [
        (0, lambda c: c()),
        (0, lambda c: c(1, [], "", 4)),
        (0, lambda c: c(1, z=2)),
        (1, lambda c: c(1)),
        (5, lambda c: c(1)),
    ],
)
def test_wrong_arguments_are_refused_the_first_time_and_after(which: int, make: Made) -> None:
    for cls in (*[classes(records.dataclass)[which]] * 2, OURS[which], STANDARD[which]):
        with pytest.raises(TypeError):
            make(cls)


def test_defaults_that_are_made_are_made_anew() -> None:
    first, second = OURS[0](1), OURS[0](1)
    first.b.append(1)
    assert second.b == []


def test_docstrings_stay() -> None:
    assert [cls.__doc__ for cls in OURS[::5]] == ["Said.", "Nothing."]


def test_what_is_frozen_takes_nothing_else() -> None:
    for name in ("a", "other"):
        with pytest.raises(FrozenInstanceError):
            setattr(OURS[0](1), name, 3)


def test_what_is_unguarded_is_frozen_for_type_checkers_alone() -> None:
    @records.unguarded
    @records.dataclass(frozen=True, slots=True)
    class Place:
        a: int
        b: int = 2

    place = Place(1)
    assert place == Place(1, 2) != Place(2)
    assert hash(place) == hash(Place(1, 2))
    assert not {"__setattr__", "__delattr__"} & vars(Place).keys()
    place.a = 5  # type: ignore[misc]
    assert place.a == 5


def test_nan_is_equal_to_itself_as_in_tuples() -> None:
    for cls in (OURS[0], OURS[1]):
        given = {"f": math.nan} if cls is OURS[1] else {}
        assert cls(math.nan, **given) == cls(math.nan, **given)


@records.dataclass(frozen=True, slots=True)
class Kept:
    a: int
    b: tuple[int, ...] = ()


def test_frozen_slots_are_copied_and_pickled() -> None:
    record = Kept(1, (2, 3))
    for again in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
        assert again == record
        assert hash(again) == hash(record)


def test_nothing_is_made_before_it_is_used() -> None:
    cls = classes(records.dataclass)[1]
    waiting = dict(vars(cls))
    made = cls(1, f=2.0)
    assert [name for name, value in waiting.items() if vars(cls)[name] is not value] == [
        "__init__",
        "__dataclass_fields__",
    ]
    assert list(inspect.signature(cls).parameters) == ["a", "b", "c", "e", "f"]
    assert made == cls(1, f=2.0)
    assert vars(cls)["__eq__"] is not waiting["__eq__"]


def test_records_without_fields_differ_in_their_hash() -> None:
    """A dict of them would be a list otherwise: the pass manager has one of all passes."""

    @records.dataclass(frozen=True, slots=True)
    class First:
        pass

    @records.dataclass(frozen=True, slots=True)
    class Second:
        pass

    assert hash(First()) == hash(First()) != hash(Second())
    assert First() == First() != Second()
