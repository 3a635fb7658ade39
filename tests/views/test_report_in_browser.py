"""The report page in Chromium: no request, no error, each click path, both themes, narrow and wide."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from onnx import parser, save

from dmlc.cli.main import main
from tests.views.test_graph_command import HOSTILE

pytestmark = pytest.mark.browser

_CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_TEXT = """<ir_version: 8, opset_import: ["": 17]> g (float[B, 4] x, float[4, 8] w, float[8] b) => (float[B, 8] y) {
    [size] s = Shape(x)
    [same] r = Reshape(x, s)
    [product] m = MatMul(r, w)
    [bias] a = Add(m, b)
    [HOSTILE] y = Relu(a)
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium; skipped, with the reason, where it or playwright is missing."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if _CHROMIUM is None:
        pytest.skip("there is no Chromium")
    with api.sync_playwright() as running:
        started = running.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    model = parser.parse_model(_TEXT)
    model.graph.node[-1].name = HOSTILE
    save(model, folder / "g.onnx")
    assert main(["report", str(folder / "g.onnx"), "-o", str(folder / "r.html"), "--verify", "1"]) == 0
    return folder / "r.html"


@pytest.fixture
def opened(browser: Any, page_file: Path, request: pytest.FixtureRequest) -> Iterator[Any]:
    """The page in a theme and width; nothing may be requested and no error may be logged while it is used."""
    scheme, width = getattr(request, "param", ("light", 1280))
    page = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}).new_page()
    faults: list[str] = []
    page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: faults.append(f"error: {error}"))
    page.on("dialog", lambda dialog: faults.append(f"dialog: {dialog.message}"))
    page.on("request", lambda sent: None if sent.url == page_file.as_uri() else faults.append(sent.url))
    page.goto(page_file.as_uri())
    yield page
    page.context.close()
    assert faults == []


def detail_of(page: Any) -> str:
    return " ".join(page.inner_text("#detail").split())


def test_a_click_on_a_made_node_shows_its_sources_and_its_rule(opened: Any) -> None:
    opened.click(".pane[data-pane=after] .n:has-text('Gemm')")
    shown = detail_of(opened)
    assert "comes from" in shown
    assert "MatMul product" in shown
    assert "promise rounding may change" in shown
    assert opened.locator(".pane[data-pane=before] .n.kin").count() >= 2
    opened.click("#detail a:has-text('product-with-bias')")
    assert opened.locator("#rule-product-with-bias").get_attribute("open") is not None


def test_a_click_on_a_removed_node_says_why_it_is_gone(opened: Any) -> None:
    opened.click(".pane[data-pane=before] .n:has-text('Shape')")
    assert "became" in detail_of(opened)


def test_search_marks_what_it_finds_and_enter_shows_it(opened: Any) -> None:
    opened.fill("#search", "relu")
    assert opened.inner_text("#hits").startswith("2 found")
    assert opened.locator(".n.hit").count() == 2
    opened.press("#search", "Enter")
    assert detail_of(opened).startswith("Relu </script><img src=x")
    opened.press("#search", "Escape")
    assert opened.locator(".n.hit").count() == 0


def test_keys_and_buttons_zoom(opened: Any) -> None:
    picture = opened.locator(".pane[data-pane=after] svg")
    wide = int(picture.get_attribute("width"))
    opened.click(".pane[data-pane=after] [data-zoom=in]")
    assert int(picture.get_attribute("width")) > wide
    opened.focus(".pane[data-pane=after] .scroll")
    opened.keyboard.press("-")
    opened.keyboard.press("-")
    assert int(picture.get_attribute("width")) < wide


def test_the_table_of_nodes_selects_by_keyboard(opened: Any) -> None:
    opened.click("#nodes summary")
    button = opened.locator("#nodes td button", has_text="bias").first
    button.focus()
    opened.keyboard.press("Enter")
    assert detail_of(opened).startswith("Add bias")
    opened.click("#ledger summary")
    assert "product-with-bias" in opened.inner_text("#ledger table")


@pytest.mark.parametrize(
    "opened", [(scheme, width) for scheme in ("light", "dark") for width in (400, 1280)], indirect=True
)
def test_page_fits_and_has_no_serious_fault_of_access(opened: Any) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.click("#nodes summary")
    opened.click(".pane[data-pane=after] .n:has-text('Gemm')")
    found = axe.Axe().run(opened).response["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert not [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in serious]
