"""The model fixtures: all tests of one follow one another, and compile it once. In the suite most tests take turns at
the models; ``--model-tests=all`` runs each with all."""

from __future__ import annotations

import zlib

import pytest
from models.compiled_fixture import CompiledFixture
from models.fixture_parameters import MODELS
from models.test_next_commands import NAMES as NEXT

#: A test of this module takes one model in this many. Others take all.
TURNS = {
    "test_checked_fixtures": 4,
    "test_fixed_point": 4,
    "test_decomposed_fixtures": 4,
    "test_bound_fixtures": 4,
    "test_program_texts": 4,
    "test_runtime_rewrites": 4,
    "test_fused_attention": 2,
}


@pytest.fixture(scope="session", params=MODELS)
def compiled(request: pytest.FixtureRequest) -> CompiledFixture:
    """Each model of the fixtures."""
    return CompiledFixture(request.param)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--model-tests") == "all":
        return
    left = [item for item in items if not _has_its_turn(item)]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if _has_its_turn(item)]


def _has_its_turn(item: pytest.Item) -> bool:
    """Tell whether the test is run with its model: by the text of both, the same every time."""
    name = item.path.stem
    if "[" not in item.name:
        return True
    if name == "test_next_commands":
        return item.name.partition("[")[2][:-1] in NEXT
    count = TURNS.get(name, 1)
    return zlib.crc32(item.name.encode()) % count == 0
