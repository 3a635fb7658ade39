"""The layers: who may import whom, and which libraries a package may load. Imports inside functions count."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import networkx
from definitions import definitions

import dmlc

PACKAGE = Path(dmlc.__file__).parent
CHECKOUT = Path(__file__).parents[2]

#: Layers from the bottom up; a package imports only packages of layers before its own.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("lazy_names",),
    ("workers",),
    ("diagnostics",),
    ("ir",),
    ("ops",),
    ("targets", "onnx_schema"),
    ("inference",),
    ("text", "builder", "importers", "passes", "placement"),
    ("codegen",),
    ("runtime",),
    ("verifying",),
    ("api",),
    ("debugging", "std"),
    ("testing",),
    ("views", "lsp"),
    ("cli",),
)
LAYER_OF = {package: layer for layer, packages in enumerate(LAYERS) for package in packages}
#: The libraries that each package may load beside the standard library.
LIBRARIES: dict[str, set[str]] = {
    "lazy_names": set(),
    "workers": {"onnxruntime"},
    "diagnostics": set(),
    "ir": {"msgspec", "numpy"},
    "ops": {"msgspec", "numpy"},
    "targets": {"msgspec"},
    "onnx_schema": {"msgspec", "numpy", "onnx"},
    "inference": {"msgspec", "numpy", "onnx"},
    "text": {"msgspec", "numpy", "lark"},
    "builder": {"msgspec", "numpy"},
    "importers": {"msgspec", "numpy", "onnx"},
    "passes": {"msgspec", "numpy"},
    "codegen": {"msgspec", "numpy"},
    "placement": {"msgspec", "numpy", "onnx"},
    "codegen/onnx": {"msgspec", "numpy", "onnx"},
    "runtime": {"msgspec", "numpy", "onnx", "onnxruntime"},
    "verifying": {"msgspec", "numpy", "onnx"},
    "api": {"msgspec", "numpy", "onnx"},
    "debugging": {"msgspec", "numpy", "onnx"},
    "std": set(),
    "testing": {"numpy", "hypothesis"},
    "views": {"msgspec", "onnx", "graphlay"},
    "views/explorer": {"onnx", "model_explorer"},
    "lsp": {"msgspec", "onnx", "lsprotocol", "pygls", "pygments"},
    "cli": {"msgspec", "numpy", "onnx", "onnxruntime", "lark"},
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


@cache
def imports(module: str) -> list[str]:
    """Every imported dotted name, at any depth; imports for type checkers only count too."""
    out = []
    for found in definitions(MODULES[module]):
        if found.kind == "import":
            name = found.name.replace(" ", ".")
            out.append(name if name in MODULES else found.name.split()[0])
    return out


def package_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else None


def layered() -> Iterator[tuple[str, str, str]]:
    """Yield each module of a layer, its package, and each name that it imports.

    The package itself and ``python -m dmlc`` stand above all layers.
    """
    for module in MODULES:
        package = package_of(module)
        if package not in (None, "__main__"):
            for name in imports(module):
                yield module, package, name


def test_packages_import_only_those_below() -> None:
    wrong = []
    for module, package, name in layered():
        other = package_of(name) if name.split(".")[0] == "dmlc" else None
        # ``from dmlc import __version__`` is the one name that dmlc itself gives to its packages
        if other is not None and other != package and LAYER_OF[other] >= LAYER_OF[package]:
            wrong.append(f"{module} imports {name}")
    assert wrong == []


def test_packages_load_only_their_libraries() -> None:
    wrong = []
    for module, package, name in layered():
        allowed = LIBRARIES.get("/".join(module.split(".")[1:3]), LIBRARIES[package]) | {"dmlc"}
        top = name.split(".")[0]
        if top not in sys.stdlib_module_names and top not in allowed:
            wrong.append(f"{module} loads {name}")
    assert wrong == []


def test_the_layers_are_those_of_the_package() -> None:
    packages = {package_of(module) for module in MODULES} - {None, "__main__"}
    assert packages == LAYER_OF.keys()


def test_no_import_cycles() -> None:
    graph = networkx.DiGraph()
    for module in MODULES:
        for name in imports(module):
            if name in MODULES and name != module:
                graph.add_edge(module, name)
    cycles = [c for c in networkx.strongly_connected_components(graph) if len(c) > 1]
    assert not cycles, cycles


def written() -> Iterator[Path]:
    """Yield the files that are written by hand; the golden files of the code generators are not."""
    for folder in ("dmlc", "tests", "tools", "benchmarks", "examples", "docs"):
        yield from (path for path in sorted((CHECKOUT / folder).rglob("*.py")) if "golden" not in path.parts)


def test_files_and_functions_stay_small() -> None:
    large = []
    for path in written():
        name = path.relative_to(CHECKOUT).as_posix()
        for found in definitions(path):
            if found.kind == "module" and found.lines >= 600:
                large.append(f"{name}: a file holds one idea, under 600 lines")
            if found.kind == "function" and found.lines >= 60:
                large.append(f"{name}: {found.name} is too long")
    assert large == []
