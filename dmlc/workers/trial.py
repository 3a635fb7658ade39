"""The process that imports one library, which may end the process that it is imported in."""

from __future__ import annotations

import importlib
import os
import pickle
import sys


def main(name: str, *names: str) -> None:
    """Import a module and write how that went to stdout, as a pickle: ``(version, error, missing, providers)``.

    ``names`` are those that every working build has. The version is None if the module cannot be used.
    """
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # a library may print
    answers.write(pickle.dumps(_imported(name, names)))
    answers.flush()


def _imported(name: str, names: tuple[str, ...]) -> tuple[str | None, str, bool, list[str]]:
    try:
        module = importlib.import_module(name)
        lacking = [each for each in names if not hasattr(module, each)]
        if lacking:
            where = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ["?"])))
            return None, f"{where} has no {lacking[0]}", False, []
        providers = module.get_available_providers() if "get_available_providers" in names else []
        return str(getattr(module, "__version__", "of unknown version")), "", False, [str(each) for each in providers]
    except BaseException as error:  # a broken package raises anything
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == name
        return None, f"{type(error).__name__}: {error}", is_missing, []
    finally:
        sys.stderr.flush()
