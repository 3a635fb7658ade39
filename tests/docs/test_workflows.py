"""The workflows of hosted runners: what their commands name exists."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import shlex
from pathlib import Path

import pytest

from dmlc.cli.main import VERBS
from tests.rows import each_row

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = {path.stem: path.read_text(encoding="utf-8") for path in sorted(FOLDER.glob("*.yml"))}
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
COMMANDS_OF = {name: re.findall(r"^ *(?:- )?run: (.+)$", text, re.MULTILINE) for name, text in WORKFLOWS.items()}
COMMANDS = [command for commands in COMMANDS_OF.values() for command in commands]


def check_dmlc(words: list[str]) -> None:
    """The verb exists, takes these options, and finds its source."""
    verb, arguments = words[0], words[1:]
    assert verb in VERBS
    module = importlib.import_module(f"dmlc.cli.{verb}")
    parser = argparse.ArgumentParser(allow_abbrev=False)
    module.add_arguments(parser)
    args = parser.parse_args(arguments)
    if "source" in args:
        assert (ROOT / args.source).exists()


def check_pytest(words: list[str]) -> None:
    """Markers are declared; paths hold tests."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-m", dest="marker", required=True)
    parser.add_argument("paths", nargs="+")
    args = parser.parse_args(words)
    assert f'"{args.marker}: ' in PROJECT
    for path in args.paths:
        tests = list((ROOT / path).glob("test_*.py"))
        assert any(f"pytest.mark.{args.marker}" in test.read_text(encoding="utf-8") for test in tests)


def check_pip(words: list[str]) -> None:
    """Workflows install this package with extras that it has."""
    action, what = words
    if what == "dist/*.whl":  # the wheel that the workflow built
        return
    match = re.fullmatch(r"\.\[(\w+)\]", what)
    assert action == "install"
    assert match is not None
    assert re.search(rf"^{match[1]} = \[", PROJECT, re.MULTILINE)


def check_python(words: list[str]) -> None:
    """Workflows run modules of the repository."""
    flag, module, *_ = words
    assert flag == "-m"
    assert importlib.util.find_spec(module) is not None


def check_uvx(words: list[str]) -> None:
    """Workflows fetch one tool that the repository does not need otherwise."""
    assert words[0] == "twine"


@each_row("command", COMMANDS)
def test_a_command_names_what_exists(command: str) -> None:
    program, *words = shlex.split(command)
    checks = {"dmlc": check_dmlc, "pytest": check_pytest, "pip": check_pip, "python": check_python, "uvx": check_uvx}
    if program in checks:
        checks[program](words)
    else:
        assert os.access(ROOT / program, os.X_OK), f"{program} is not a program of the repository"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_the_text_is_laid_out_as_yaml(name: str) -> None:
    lines = WORKFLOWS[name].splitlines()
    assert not any("\t" in line or line != line.rstrip() for line in lines)
    keys = [line.split(":")[0] for line in lines if re.match(r"\w", line)]
    assert keys == ["name", "on", "permissions", "jobs"]
    assert f"name: {name}" in lines
    for line in lines:
        assert line.strip().startswith("#") or re.match(r"^(?:  )*(?:- )?[\w.-]+:(?: \S.*)?$", line), line


def test_what_the_windows_runner_does() -> None:
    assert "runs-on: windows-latest" in WORKFLOWS["windows"]
    assert 'python-version: "3.11"' in WORKFLOWS["windows"]
    programs = [" ".join(command.split()[:2]) for command in COMMANDS_OF["windows"]]
    assert programs == ["pip install", "dmlc doctor", "pytest -m", "dmlc bench"]


def test_the_linux_runner_takes_every_python_that_is_supported() -> None:
    supported = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT)
    (matrix,) = re.findall(r"python: \[(.*)\]", WORKFLOWS["linux"])
    assert re.findall(r'"(.*?)"', matrix) == supported
    assert COMMANDS[0] == ".ci/run"


def test_the_readme_says_the_command_for_ones_own_machine() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = [line for line in readme.splitlines() if line.startswith("dmlc doctor && ")]
    for command in line.split(" && "):
        check_dmlc(shlex.split(command)[1:])
