"""The README and the docs say what is so."""

from __future__ import annotations

import os
import re
import runpy
from collections import Counter
from pathlib import Path

import pytest

from dmlc.cli.main import main
from dmlc.diagnostics import CODES
from dmlc.ir.dtype import DTYPES
from dmlc.ops import OPERATIONS
from dmlc.passes.repair import RULES
from dmlc.targets.target import load_data
from tests.rows import each_row
from tools.distribution import readme_alone

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFERENCE = ROOT / "docs" / "reference" / "language.md"


def blocks(language: str) -> list[str]:
    """The fenced blocks marked with that language."""
    fences = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for mark, text in fences if mark == language]


def test_the_two_commands_are_lines_by_themselves() -> None:
    commands = [line for line in README.splitlines() if line.startswith("pip install")]
    assert len(commands) == 2
    assert commands[0].startswith("pip install . && dmlc compile examples/")
    assert commands[1] == 'pip install ".[test]" && pytest'
    assert not any("'" in command for command in commands), "cmd knows double quotes alone"


def test_the_first_command_prints_what_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the seconds; the output is written into another folder."""
    monkeypatch.chdir(ROOT)
    command = next(line for line in README.splitlines() if line.startswith("pip install . && dmlc compile "))
    words = command.split("&& dmlc ")[1].split()
    written = words[-1]
    assert main([*words[:-1], str(tmp_path / written)]) == 0
    printed = capsys.readouterr().err.replace(f"{tmp_path}{os.sep}", "")
    shown = next(block for block in blocks("") if block.startswith(f"{written}: directml, "))
    assert timeless(printed) == timeless(shown)


def timeless(text: str) -> str:
    """A text without the seconds in it."""
    return re.sub(r"\b\d+\.\d\d s\b", "SECONDS", text)


def relative_links(text: str) -> list[str]:
    """The links and pictures that PyPI, which shows the README alone, does not resolve."""
    return re.findall(r'\]\((?!https?:|#)([^)]+)\)|(?:src|srcset)="(?!https?:)([^"]+)"', text)


def test_a_distribution_has_no_link_that_its_page_does_not_resolve() -> None:
    assert len(relative_links(README)) > 10
    assert not relative_links(readme_alone(README, None))
    addressed = readme_alone(README, "https://host/project")
    assert not relative_links(addressed)
    assert addressed.count("https://host/project/") == len(relative_links(README))
    assert "[tutorial](https://host/project/blob/HEAD/docs/tutorial/README.md)" in addressed


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_the_figures_about_faults_are_those_of_the_tables() -> None:
    """All faults of DirectML's provider, by what they do, and those that a rule repairs."""
    faults = load_data("dml_ep")["failures"]
    effects = Counter(fault["effect"] for fault in faults)
    repaired = [fault for fault in faults if any(fault["id"] in rule.repairs for rule in RULES)]
    text = " ".join(README.split())
    assert f"has {len(faults)} [known faults]" in text
    assert f"{effects['wrong']} of them give wrong numbers and {effects['fails']} keep a model from loading" in text
    assert f"dmlc rewrites the nodes of {len(repaired)}, and names the others" in text


def test_the_figures_about_webgpu_are_those_of_its_page() -> None:
    page = (ROOT / "docs" / "webgpu.md").read_text(encoding="utf-8")
    (whole,) = re.findall(r"^\| `webgpu` \| .* \| (\d+) \|$", page[: page.index("68 patterns")], re.MULTILINE)
    (agreed, all_models) = re.findall(r"each node of (\d+) of the (\d+) models", " ".join(page.split()))[0]
    text = " ".join(README.split())
    assert f"of {all_models} exports {whole} run wholly on it" in text
    assert f"was predicted as its log says for {agreed} (" in text


def test_the_program_and_its_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    program = next(b for b in blocks("") if b.startswith("dim batch"))
    Path("heads.dml").write_text(program)
    assert main(["fmt", "--check", "heads.dml"]) == 0
    assert main(["compile", "heads.dml"]) == 0
    assert main(["run", "heads.dml", "--random", "1"]) == 0
    capsys.readouterr()
    Path("heads.dml").write_text(program.replace("[1, 2, 3]", "[1, 2, 4]"))
    assert main(["check", "heads.dml"]) == 1
    assert capsys.readouterr().err in blocks("")


def test_the_picture_is_of_a_real_run(tmp_path: Path) -> None:
    out = tmp_path / "digits.svg"
    runpy.run_path(str(ROOT / "docs" / "picture.py"))["main"](out)
    assert out.read_text() == (ROOT / "docs" / "digits.svg").read_text(), "run: python docs/picture.py"


def anchors(text: str) -> set[str]:
    """The names of the headings of a page that GitHub and the site have both."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = [
        re.sub(r"[^\w\s-]", "", re.sub(r"\[(.*?)\]\(.*?\)", r"\1", heading)).strip().lower() for heading in headings
    ]
    return {heading.replace(" ", "-") for heading in plain} & {re.sub(r"[-\s]+", "-", heading) for heading in plain}


@each_row("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere_and_codes_exist(page: Path) -> None:
    import dmlc.diagnostics.catalogue  # noqa: F401  (fills CODES)

    text = page.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / target).exists(), target
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", text):
        assert anchor in anchors((page.parent / target if target else page).read_text(encoding="utf-8")), anchor
    for code in re.findall(r"\b[EWI]0\d{3}\b", text):
        assert code in CODES, code


def test_the_language_reference_names_every_operation_and_dtype() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    written = {word for code in re.findall(r"`([^`]*)`", text) for word in re.findall(r"\w+", code)}
    assert not [name for name in [*OPERATIONS, *(dtype.name for dtype in DTYPES)] if name not in written]
