"""The model fixtures as parameters of tests."""

from __future__ import annotations

import pytest

from tools.fixture_folder import PARTS, VARIABLE, fixtures


def parameters(part: str) -> list[object]:
    """The models of a part, as the parameters of a test that is skipped without a folder."""
    found = fixtures(part)
    if found:
        return [pytest.param(path, id=name) for name, path in found.items()]
    reason = f"there is no folder of model fixtures: {VARIABLE} names one (CONTRIBUTING.md)"
    return [pytest.param(None, id=part, marks=pytest.mark.skip(reason=reason))]


def named(*names: str) -> list[object]:
    """The models with these names, of any part, as ``parameters`` gives them."""
    every = [item for part in PARTS for item in parameters(part)]
    return [item for item in every if getattr(item, "id", "") in names] or every[:1]


#: The models but the small ones of patterns.
WHOLE_MODELS = [item for part in ("whole", "torch") for item in parameters(part)]
#: All models. The others come first: pytest brings tests of one model together by its place in either list.
MODELS = [*WHOLE_MODELS, *parameters("patterns")]
#: Marks a test that is run with ``WHOLE_MODELS`` alone as ``compiled``.
of_whole_models = pytest.mark.parametrize("compiled", WHOLE_MODELS, indirect=True)
