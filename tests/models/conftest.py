"""The model fixtures: all tests of one follow one another, and compile it once."""

from __future__ import annotations

import pytest
from models.compiled_fixture import CompiledFixture
from models.fixture_parameters import parameters

from tools.fixture_folder import PARTS


@pytest.fixture(scope="session", params=[item for part in PARTS for item in parameters(part)])
def compiled(request: pytest.FixtureRequest) -> CompiledFixture:
    """Each model of the fixtures."""
    return CompiledFixture(request.param)
