"""The rooms: who may import whom, and which libraries a room may load. Imports inside functions count."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import networkx
import pytest

import dmlc

PACKAGE = Path(dmlc.__file__).parent
CHECKOUT = Path(__file__).parents[2]

#: Rows from the bottom up; a room imports only rooms of rows before its own.
ROWS: tuple[tuple[str, ...], ...] = (
    ("records", "workers"),
    ("diagnostics",),
    ("ir",),
    ("ops",),
    ("targets", "onnx_schema"),
    ("inference",),
    ("text", "builder", "importers", "passes", "codegen", "placement"),
    ("runtime", "verify"),
    ("api",),
    ("ledgers",),
    ("cli",),
)
ROW_OF = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
#: What each room may load beside the standard library and numpy.
LIBRARIES: dict[str, set[str]] = {
    "records": set(),
    "workers": set(),
    "diagnostics": set(),
    "ir": {"numpy", "networkx"},
    "ops": {"numpy"},
    "targets": set(),
    "onnx_schema": {"numpy", "onnx"},
    "inference": {"numpy", "onnx"},
    "text": {"numpy", "lark"},
    "builder": {"numpy"},
    "importers": {"numpy", "onnx"},
    "passes": {"numpy", "networkx"},
    "codegen": {"numpy"},
    "placement": {"numpy", "onnx"},
    "codegen/onnx": {"numpy", "onnx"},
    "runtime": {"numpy", "onnx", "onnxruntime"},
    "verify": {"numpy", "onnxruntime", "onnx"},
    "api": {"numpy", "onnx"},
    "ledgers": set(),
    "cli": {"numpy", "onnx", "onnxruntime", "lark", "networkx"},
}


def modules() -> dict[str, Path]:
    out = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = ["dmlc", *path.relative_to(PACKAGE).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        out[".".join(parts)] = path
    return out


MODULES = modules()


def imports(path: Path) -> list[str]:
    """Every imported dotted name, at any depth; imports for type checkers only count too."""
    out = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            out += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                out.append(full if full in MODULES else node.module)
    return out


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


@pytest.mark.parametrize("module", sorted(MODULES))
def test_rooms_import_only_rooms_below(module: str) -> None:
    room = room_of(module)
    if room is None or room == "__main__":
        return  # the package itself and `python -m dmlc` stand above all rooms
    assert room in ROW_OF, f"{module} is in no room"
    for name in imports(MODULES[module]):
        if name.split(".")[0] != "dmlc":
            continue
        other = room_of(name)
        if other is None or other == room:
            # `from dmlc import __version__` is the one name that the package itself gives to its rooms
            continue
        assert ROW_OF[other] < ROW_OF[room], f"{module} imports {name}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_rooms_load_only_their_libraries(module: str) -> None:
    room = room_of(module)
    if room is None or room == "__main__":
        return
    sub = "/".join(module.split(".")[1:3])
    allowed = LIBRARIES.get(sub, LIBRARIES[room]) | {"dmlc"}
    for name in imports(MODULES[module]):
        top = name.split(".")[0]
        assert top in sys.stdlib_module_names or top in allowed, f"{module} loads {name}"


def test_the_package_knows_its_rooms() -> None:
    assert {room for room in map(room_of, MODULES) if room not in (None, "__main__")} == ROW_OF.keys() == dmlc._ROOMS


def test_no_import_cycles() -> None:
    graph = networkx.DiGraph()
    for module, path in MODULES.items():
        for name in imports(path):
            if name in MODULES and name != module:
                graph.add_edge(module, name)
    cycles = [c for c in networkx.strongly_connected_components(graph) if len(c) > 1]
    assert not cycles, cycles


#: What is written by hand; the golden files of the code generators are not.
WRITTEN = sorted(
    path.relative_to(CHECKOUT).as_posix()
    for room in ("dmlc", "tests", "tools", "benchmarks", "examples", "docs")
    for path in (CHECKOUT / room).rglob("*.py")
    if "golden" not in path.parts
)


@pytest.mark.parametrize("file", WRITTEN)
def test_files_and_functions_stay_small(file: str) -> None:
    text = (CHECKOUT / file).read_text(encoding="utf-8")
    assert text.count("\n") < 600, "a file holds one idea, under 600 lines"
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            assert node.end_lineno is not None
            assert node.end_lineno - node.lineno < 60, f"{node.name} is too long"


def test_onnx_infers_shapes_in_the_worker_alone() -> None:
    """Its C++ inference can end the process, or fill the memory, for a node that a user's model holds."""
    calling = [module for module, path in MODULES.items() if "shape_inference" in names_used(path)]
    assert calling == ["dmlc.inference.node_worker"]


def names_used(path: Path) -> set[str]:
    """The names and attributes in the code of a module, those of its imports included."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom):
            used |= {*(node.module or "").split("."), *(alias.name for alias in node.names)}
        elif isinstance(node, ast.Import):
            used |= {part for alias in node.names for part in alias.name.split(".")}
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
    return used
