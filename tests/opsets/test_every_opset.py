"""A sample of ``python -m tools.opsets``."""

from __future__ import annotations

from functools import cache

import pytest

from tools.opsets.judge import complaints, number
from tools.opsets.models import Source, node_tests, revised, sources

#: One in so many is judged: of the old models, and of the others.
OLD_RATE, RATE = 3, 240
#: Tests among which the models are dealt out.
PARTS = 8


@cache
def sample() -> list[Source]:
    return [source for source in sources() if number(source) % (OLD_RATE if source.is_old else RATE) == 0]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_model_is_refused_for_its_opset_and_none_differs(part: int) -> None:
    """Each part has models from everywhere. The complaints name them."""
    found = [text for source in sample()[part::PARTS] for text in complaints(source)]
    assert not found, "\n".join(found)


def test_most_models_are_said_at_several_opsets() -> None:
    models = [model for model, _ in node_tests().values()][::20]
    said = sum(revised(model, opset) is not None for model in models for opset in (11, 13, 18))
    assert said > len(models)
