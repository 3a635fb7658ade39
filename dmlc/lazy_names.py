"""Names of a package that load their module when they are first asked for.

``python -m tools.builder_stubs --write`` writes the stub of each such package from its table, for type checkers.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # loading typing takes a millisecond
if TYPE_CHECKING:
    from collections.abc import Callable


def lazy_names(
    package: str, modules: dict[str, tuple[str, ...]]
) -> tuple[dict[str, tuple[str, str]], Callable[[str], object], Callable[[], list[str]]]:
    """Return the module of each name with its name there, and ``__getattr__`` and ``__dir__`` of the package.

    ``modules`` has the names by module of the package; ``"TextSource as Source"`` gives a name another one.
    """
    sources = {}
    for module, names in modules.items():
        for name in names:
            there, _, here = name.partition(" as ")
            sources[here or there] = (f"{package}.{module}", there)

    def load(name: str) -> object:
        if name == "__all__":
            return sorted(sources)
        if name not in sources:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module, there = sources[name]
        return getattr(importlib.import_module(module), there)

    return sources, load, lambda: sorted(sources)
