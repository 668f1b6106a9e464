"""Every kind of page in a browser, light and dark, narrow and wide: labels can be read, nothing is cut off or asked
for, plots enlarge by hand and by keyboard."""

from pathlib import Path

import pytest

from commands import tried
from quoin import plot
from quoin.autodiff import plot_graph, trace
from quoin.plot import palette

sync_api = pytest.importorskip("playwright.sync_api")
CHROMIUM = Path("/usr/bin/chromium")
pytestmark = [pytest.mark.deep, pytest.mark.skipif(not CHROMIUM.exists(), reason="no browser here")]

WIDTHS = (400, 1000, 1600)
QUICK = ("--max-steps", 3, "--num-threads", 1, "--json")
TINY = ("--embed-dim", 16, "--num-layers", 1, "--num-heads", 2, "--context-length", 32, "--batch-size", 4)

# For each label of a plot its colour and the colours painted under its middle, the lowest first, as red, green, blue
# and alpha; labels on images are left out, as a style sheet does not say what an image shows.
LABELS = """() => {
  const channels = (color, ...alphas) => {
    const [r, g, b, a = 1] = color.match(/[\\d.]+/g).map(Number);
    return [r, g, b, alphas.reduce((product, each) => product * Number(each), a)];
  };
  const found = [];
  for (const label of document.querySelectorAll('svg.quoin-plot :is(g[id*="text_"], g[id*="words-"])')) {
    const ink = label.querySelector("use, path"), box = label.getBoundingClientRect();
    if (!ink || !box.width) continue;
    const style = getComputedStyle(ink), under = [], x = box.x + box.width / 2, y = box.y + box.height / 2;
    let image = false;
    for (const each of document.elementsFromPoint(x, y).reverse()) {
      if (label.contains(each)) continue;
      if (each.localName === "image") image = true;
      const own = getComputedStyle(each), fill = each.closest("svg") ? own.fill : own.backgroundColor;
      if (each.localName === "svg" || each.closest("g[id*='text_'], g[id*='words-']") || fill === "none") continue;
      under.push(each.closest("svg") ? channels(fill, own.fillOpacity, own.opacity) : channels(fill));
    }
    if (!image) found.push({ id: label.id, ink: channels(style.fill), under });
  }
  return found;
}"""
WORDS = """() => [...document.querySelectorAll("h1, h2, h3, p, td, th, figcaption, summary, a, button, li, label")]
  .filter(each => each.getClientRects().length && each.textContent.trim() && !each.closest("svg"))
  .map(each => {
    let behind = each;
    while (behind && getComputedStyle(behind).backgroundColor === "rgba(0, 0, 0, 0)") behind = behind.parentElement;
    return [each.outerHTML.slice(0, 80), getComputedStyle(each).color,
      behind ? getComputedStyle(behind).backgroundColor : "rgb(255, 255, 255)"];
  })"""
SHEETS = """() => [...document.querySelectorAll("svg.quoin-plot")]
  .map(svg => getComputedStyle(svg.querySelector('g[id$="patch_1"] path')).fill)"""
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")

    def ran(*words: object) -> None:
        code, _, err = tried(*words)
        assert code == 0, err

    for recipe, *more in (("mlp",), ("mlp", "--lr", 0.2), ("vae",), ("transformer-lm", *TINY), ("lenet",)):
        ran("train", recipe, *more, *QUICK, "--runs", folder)
    ran("train", "ridge", *QUICK, "--seeds", 2, "--runs", folder, "--name", "study")
    ran("compare", folder / "mlp-1", folder / "mlp-2", "--out", folder / "compare.html")
    ran("inspect", folder / "lenet-1", "--out", folder / "inspect.html")
    ran("inspect", folder / "transformer-lm-1", "--text", "of the law", "--out", folder / "lm.html")
    ran("figure", "D1F1", "Z2.6", "--out", folder / "figures", "--gallery")
    (attention,) = folder.glob("lm-*.html")
    plot.curves({"a": ([1, 2], [3, 4])}, title="A plot").save(folder / "plot.html")
    import torch

    graph = plot_graph(trace(lambda x: (x * x).sum(), torch.ones(2)))
    graph.save(folder / "graph.html")
    return {
        "mlp": folder / "mlp-1" / "report.html",
        "vae": folder / "vae-1" / "report.html",
        "transformer-lm": folder / "transformer-lm-1" / "report.html",
        "seeds": folder / "study" / "report.html",
        "compare": folder / "compare.html",
        "inspect": folder / "inspect.html",
        "inspect text": folder / "lm.html",
        "attention": attention,
        "gallery": folder / "figures" / "index.html",
        "svg": folder / "figures" / "Z2.6.svg",
        "plot": folder / "plot.html",
        "graph": folder / "graph.html",
    }


KINDS = ("mlp", "vae", "transformer-lm", "seeds", "compare", "inspect", "inspect text", "attention", "gallery", "svg")
KINDS += ("plot", "graph")


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, request):
    """A function that opens a page and collects what it says and asks for."""
    made = []

    def open_page(path: Path, scheme: str, width: int, height: int = 900):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height})
        made.append(context)
        page = context.new_page()
        page.said, page.asked = [], []
        page.on("console", lambda message: page.said.append(message.text))
        page.on("pageerror", lambda error: page.said.append(str(error)))
        page.on("request", lambda asked: page.asked.append(asked.url))
        page.goto(path.as_uri())
        page.wait_for_timeout(150)
        return page

    yield open_page
    for context in made:
        context.close()


def over(layers: list[list[float]], paper: str) -> str:
    """Colours with alpha, one over another, on opaque paper."""
    color = [int(paper[i : i + 2], 16) for i in (1, 3, 5)]
    for *channels, alpha in layers:
        color = [alpha * new + (1 - alpha) * old for new, old in zip(channels, color)]
    return "#" + "".join(f"{round(channel):02x}" for channel in color)


def as_hex(css: str) -> str:
    import re

    return "#" + "".join(f"{round(float(channel)):02x}" for channel in re.findall(r"[\d.]+", css)[:3])


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_label_and_every_word_can_be_read(kind, scheme, pages, opened):
    page = opened(pages[kind], scheme, 1600, 6000)
    paper = palette.LIGHT.paper if scheme == "light" else palette.DARK.paper
    if kind != "svg":
        assert as_hex(page.evaluate("() => getComputedStyle(document.body).backgroundColor")) == paper
        words = page.evaluate(WORDS)
        assert words
        pale = [each for each in words if palette.contrast(as_hex(each[1]), as_hex(each[2])) < 4.5]
        assert not pale, pale[:3]
    assert {as_hex(fill) for fill in page.evaluate(SHEETS)} <= {paper}  # a plot is on the paper of its page
    labels = page.evaluate(LABELS)
    assert labels or kind in ("attention", "gallery")
    for label in labels:
        behind = over(label["under"], paper)
        ink = over([label["ink"]], behind)
        assert palette.contrast(ink, behind) >= 4.5, (label, ink, behind)
    assert page.said == []
    assert all(asked.startswith(("file:", "data:", "blob:")) for asked in page.asked), page.asked


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "svg"])
def test_nothing_is_cut_off_at_the_side(kind, width, pages, opened):
    page = opened(pages[kind], "dark", width)
    assert page.evaluate(OVERFLOW) <= 0


def test_contents_and_panels_stand_side_by_side_where_the_window_is_wide(pages, opened):
    for width, columns in ((1600, 2), (1000, 1)):
        page = opened(pages["mlp"], "light", width)
        lefts = page.evaluate("() => [...document.querySelectorAll('figure')].map(f => f.getBoundingClientRect().left)")
        assert len({round(left) for left in lefts}) == columns
        contents, main = (page.locator(name).bounding_box() for name in ("nav.contents", "main"))
        assert (contents["x"] + contents["width"] <= main["x"]) == (columns == 2)
    page.locator("nav.contents a").last.click()
    assert page.evaluate("() => location.hash") == "#configuration"


@pytest.mark.parametrize("kind", ["mlp", "gallery"])
def test_a_plot_enlarges_by_hand_and_by_keyboard_and_goes_back(kind, pages, opened):
    from playwright.sync_api import expect

    page = opened(pages[kind], "light", 1000)
    picture = page.locator("figure .plot").first.locator(":scope > :is(svg, img)")
    small = picture.bounding_box()
    large = page.locator("dialog > :is(svg, img)")
    picture.click()
    assert large.bounding_box()["width"] > small["width"]
    page.keyboard.press("Escape")
    expect(large).to_have_count(0)  # the dialog closes in its own time
    assert picture.bounding_box()["width"] == pytest.approx(small["width"], abs=1)
    button = page.locator("button.enlarge").first
    button.focus()
    assert "Enlarge" in button.get_attribute("aria-label")
    page.keyboard.press("Enter")
    assert large.count() == 1
    page.get_by_role("button", name="Close").click()
    expect(large).to_have_count(0)  # the dialog closes in its own time
    assert page.evaluate("() => document.activeElement.className") == "enlarge"
    assert page.said == []
