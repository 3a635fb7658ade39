"""The model fixtures: all tests of one follow one another, and compile it once."""

from __future__ import annotations

import pytest
from models.compiled_fixture import CompiledFixture
from models.fixture_parameters import MODELS


@pytest.fixture(scope="session", params=MODELS)
def compiled(request: pytest.FixtureRequest) -> CompiledFixture:
    """Each model of the fixtures."""
    return CompiledFixture(request.param)
