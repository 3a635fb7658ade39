"""Programs and models that are broken in a few places are read, or refused with a code; a fault is seen as one."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.diagnostics.catalogue.syntax import EMPTY
from tools.fuzz.readers import broken_model, broken_text, judge, models, programs, read_model, read_text


def test_broken_programs_do_no_harm() -> None:
    rng = random.Random(1)
    found = [judge(read_text, broken_text(rng.choice(programs()), rng)) for _ in range(300)]
    assert {"", "E0101", "E0201", "E0309"} <= set(found)


def test_broken_models_do_no_harm() -> None:
    rng = random.Random(1)
    found = [judge(read_model, broken_model(rng.choice(models(grown=4)), rng)) for _ in range(400)]
    assert {"", "E0430", "E0431"} <= set(found)


def raises(error: BaseException) -> Callable[[bytes], None]:
    def read(data: bytes) -> None:
        raise error

    return read


def test_judge_passes_on_what_no_input_may_cause() -> None:
    assert judge(lambda data: None, b"") == ""
    assert judge(raises(fail(EMPTY, "the program is empty")), b"") == "E0113"
    for error in (ValueError("x"), RecursionError(), MemoryError(), fail(INTERNAL, "broken graph", exit_code=3)):
        with pytest.raises(type(error)):
            judge(raises(error), b"")
