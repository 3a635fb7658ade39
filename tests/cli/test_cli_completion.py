"""The scripts of ``dmlc completion`` know each command, its options and their words; shells that are here read them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dmlc.cli.completion import SHELLS
from dmlc.cli.main import VERBS
from tests.command_line import Run


@pytest.fixture(scope="module", params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_a_script_has_all_commands_and_the_words_of_options(command_line: Run, shell: str) -> None:
    code, script, err = command_line("completion", shell)
    assert (code, err) == (0, "")
    assert all(verb in script for verb in VERBS)
    for words in ("inline copy reference", "text json sarif github", "directml"):
        assert words in script
    assert ("-l locate" if shell == "fish" else "--locate") in script


def test_a_shell_takes_its_script(command_line: Run, shell: str, tmp_path: Path) -> None:
    program = shutil.which(shell)
    if program is None or shell == "powershell":
        pytest.skip(f"{shell} is not installed")
    path = tmp_path / "script"
    path.write_text(command_line("completion", shell)[1])
    subprocess.run([program, "-n", str(path)], check=True, timeout=60)


@pytest.mark.parametrize(
    ("line", "expected"),
    [("verify --loc", "--locate"), ("compile --weights r", "reference"), ("doc", "doctor"), ("fmt a", "")],
)
def test_bash_completes(command_line: Run, tmp_path: Path, line: str, expected: str) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    script = command_line("completion", "bash")[1]
    ask = (
        f'compopt() {{ :; }}; COMP_WORDS=(dmlc {line}); COMP_CWORD={len(line.split())}; _dmlc; echo "${{COMPREPLY[@]}}"'
    )
    path = tmp_path / "script"
    path.write_text(f"{script}\n{ask}\n")
    done = subprocess.run([bash, str(path)], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == expected
