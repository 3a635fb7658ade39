"""DirectML's tables against the reference pages: each cell accepts what it lists and refuses what it does not.

The expected cells are written by hand from the pages of DML_ARGMAX, DML_ARGMIN, DML_TOP_K1 and
DML_ACTIVATION_HARDMAX1_OPERATOR_DESC (tensor support) and of DML_REDUCE_OPERATOR_DESC.
"""

from __future__ import annotations

from dmlc.targets.directml import feature_levels, first_level, level_key, operator_rows, refusal
from tests.rows import each_row

EVERY = frozenset(["f64", "f32", "f16", "i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8"])
ALL = "f32 f16 i64 i32 i16 i8 u64 u32 u16 u8"
UP_TO_32 = "f32 f16 i32 i16 i8 u32 u16 u8"
WIDE = "f32 f16 i64 i32 u64 u32"
WORDS = "f32 f16 i32 u32"
FLOATS = "f32 f16"
INDEX = "i64 i32 u64 u32"
IN, OUT, VALUES, INDICES = "InputTensor", "OutputTensor", "OutputValueTensor", "OutputIndexTensor"

#: (operator, feature level, tensor, least axes, most axes, types): the cell that holds from that level on.
CELLS = [
    ("ARGMAX", "4.1", IN, 1, 8, ALL),
    ("ARGMAX", "4.1", OUT, 1, 8, INDEX),
    ("ARGMAX", "3.0", IN, 1, 8, UP_TO_32),
    ("ARGMAX", "3.0", OUT, 1, 8, INDEX),
    ("ARGMIN", "4.1", IN, 1, 8, ALL),
    ("ARGMIN", "4.1", OUT, 1, 8, INDEX),
    ("ARGMIN", "3.0", IN, 1, 8, UP_TO_32),
    ("ARGMIN", "3.0", OUT, 1, 8, INDEX),
    ("TOP_K1", "5.0", IN, 1, 8, ALL),
    ("TOP_K1", "5.0", VALUES, 1, 8, ALL),
    ("TOP_K1", "5.0", INDICES, 1, 8, "u64 u32"),
    ("TOP_K1", "3.1", IN, 1, 8, UP_TO_32),
    ("TOP_K1", "3.1", VALUES, 1, 8, UP_TO_32),
    ("TOP_K1", "3.1", INDICES, 1, 8, "u32"),
    ("TOP_K1", "2.1", IN, 4, 4, UP_TO_32),
    ("TOP_K1", "2.1", VALUES, 4, 4, UP_TO_32),
    ("TOP_K1", "2.1", INDICES, 4, 4, "u32"),
    ("ACTIVATION_HARDMAX1", "5.1", IN, 1, 8, FLOATS),
    ("ACTIVATION_HARDMAX1", "5.1", OUT, 1, 8, FLOATS),
]
for _function in ("ARGMAX", "ARGMIN"):
    CELLS += [
        (f"REDUCE.{_function}", "4.1", IN, 1, 8, ALL),
        (f"REDUCE.{_function}", "4.1", OUT, 1, 8, INDEX),
        (f"REDUCE.{_function}", "3.0", IN, 1, 8, UP_TO_32),
        (f"REDUCE.{_function}", "3.0", OUT, 1, 8, INDEX),
        (f"REDUCE.{_function}", "2.1", IN, 4, 4, UP_TO_32),
        (f"REDUCE.{_function}", "2.1", OUT, 4, 4, "u32"),
        (f"REDUCE.{_function}", "1.0", IN, 4, 4, FLOATS),
        (f"REDUCE.{_function}", "1.0", OUT, 4, 4, "u32"),
    ]
for _tensor in (IN, OUT):
    for _function in ("AVERAGE", "L2", "LOG_SUM", "LOG_SUM_EXP"):
        CELLS += [
            (f"REDUCE.{_function}", "3.0", _tensor, 1, 8, FLOATS),
            (f"REDUCE.{_function}", "1.0", _tensor, 4, 4, FLOATS),
        ]
    for _function in ("L1", "SUM_SQUARE"):
        CELLS += [
            (f"REDUCE.{_function}", "5.0", _tensor, 1, 8, WIDE),
            (f"REDUCE.{_function}", "3.0", _tensor, 1, 8, FLOATS),
            (f"REDUCE.{_function}", "1.0", _tensor, 4, 4, FLOATS),
        ]
    for _function in ("MIN", "MAX"):
        CELLS += [
            (f"REDUCE.{_function}", "5.0", _tensor, 1, 8, ALL),
            (f"REDUCE.{_function}", "3.0", _tensor, 1, 8, UP_TO_32),
            (f"REDUCE.{_function}", "2.1", _tensor, 4, 4, WORDS),
            (f"REDUCE.{_function}", "1.0", _tensor, 4, 4, FLOATS),
        ]
    for _function in ("MULTIPLY", "SUM"):
        CELLS += [
            (f"REDUCE.{_function}", "5.0", _tensor, 1, 8, WIDE),
            (f"REDUCE.{_function}", "3.0", _tensor, 1, 8, WORDS),
            (f"REDUCE.{_function}", "2.1", _tensor, 4, 4, WORDS),
            (f"REDUCE.{_function}", "1.0", _tensor, 4, 4, FLOATS),
        ]
INTRODUCED = {"ARGMAX": "3.0", "ARGMIN": "3.0", "TOP_K1": "2.1", "ACTIVATION_HARDMAX1": "5.1", "REDUCE.SUM": "1.0"}


def _id(cell: tuple) -> str:
    return "-".join(cell[:3])


@each_row("cell", CELLS, ids=map(_id, CELLS))
def test_a_cell_accepts_what_it_lists(cell: tuple) -> None:
    operator, level, tensor, least, most, types = cell
    row = operator_rows()[operator]
    for dtype in types.split():
        for rank in (least, most):
            assert refusal(row, {tensor: (dtype, rank)}, level) is None, (dtype, rank)


@each_row("cell", CELLS, ids=map(_id, CELLS))
def test_a_cell_refuses_what_it_does_not_list(cell: tuple) -> None:
    operator, level, tensor, _, most, types = cell
    row = operator_rows()[operator]
    for dtype in EVERY - set(types.split()):
        found = refusal(row, {tensor: (dtype, most)}, level)
        assert found is not None, dtype
        assert (found.operator, found.source) == (operator, row.source)
        assert all(word in found.limit for word in (tensor, level, dtype))
    found = refusal(row, {tensor: (types.split()[0], most + 1)}, level)
    assert found is not None
    assert f"up to {most} axes" in found.limit


def test_the_cells_are_all_that_the_rows_have() -> None:
    names = {cell[0] for cell in CELLS}
    for name in names:
        row = operator_rows()[name]
        cells = {(since, tensor) for since, tensors in row.levels for tensor in tensors}
        assert cells == {(c[1], c[2]) for c in CELLS if c[0] == name}
        for since, tensors in row.levels:
            for tensor, found in tensors.items():
                (cell,) = [c for c in CELLS if c[:3] == (name, since, tensor)]
                assert (found.least, found.most, found.types) == (cell[3], cell[4], set(cell[5].split()))


@each_row(("operator", "level"), INTRODUCED.items())
def test_an_operator_does_not_exist_before_its_level(operator: str, level: str) -> None:
    row = operator_rows()[operator]
    assert row.introduced == level
    assert refusal(row, {}, level) is None
    before = [known for known in feature_levels() if level_key(known) < level_key(level)]
    for earlier in before:
        found = refusal(row, {}, earlier)
        assert found is not None
        assert found.first_level == level
        assert f"from feature level {level} on" in found.limit


@each_row(
    ("operator", "tensors", "level"),
    [
        ("ARGMAX", {IN: ("i64", 3)}, "4.1"),
        ("ARGMAX", {IN: ("f32", 3)}, "3.0"),
        ("ARGMAX", {IN: ("f64", 3)}, None),
        ("TOP_K1", {IN: ("f32", 4), INDICES: ("u32", 4)}, "2.1"),
        ("TOP_K1", {IN: ("f32", 5)}, "3.1"),
        ("TOP_K1", {IN: ("f32", 4), INDICES: ("u64", 4)}, "5.0"),
        ("TOP_K1", {INDICES: ("i64", 4)}, None),
        ("REDUCE.SUM", {IN: ("f32", 2)}, "1.0"),  # ones are put before it
        ("REDUCE.SUM", {IN: ("i64", 2)}, "5.0"),
        ("REDUCE.AVERAGE", {IN: ("i32", 2)}, None),
        ("REDUCE.MAX", {IN: ("bool", 2)}, "3.0"),  # bool is UINT8
    ],
)
def test_the_first_level_that_suffices(operator: str, tensors: dict, level: str | None) -> None:
    assert first_level(operator_rows()[operator], tensors) == level


def test_what_is_not_known_is_not_held_against_a_tensor() -> None:
    assert refusal(operator_rows()["ARGMAX"], {IN: (None, None)}, "6.4") is None
