"""The form of a row: a change with one version of an operator, and the form of a node before and after it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from dmlc.onnx_schema.moves.draft import Draft, Unmovable

#: Changes the draft in place. Raises ``Unmovable``.
Step: TypeAlias = Callable[[Draft], None]


def as_it_is(draft: Draft) -> None:
    """The older form is a form of the newer version too, or the general rules say all there is to say."""


def never(why: str) -> Step:
    def refuse(draft: Draft) -> None:
        raise Unmovable(why)

    return refuse


class Row(Struct, frozen=True):
    """The change that came with version ``since`` of an operator.

    ``up`` turns the form before it into the form after it. ``down`` turns it the other way, for versions above the
    oldest opset of the targets; what the older version does not have is refused in general after it. ``becomes`` is the
    operator that took this one's place. ``why`` says what changed (onnx, docs/Changelog.md, under the operator and
    version, unless it says otherwise).
    """

    op: str
    since: int
    why: str
    up: Step = as_it_is
    down: Step = as_it_is
    becomes: str = ""
