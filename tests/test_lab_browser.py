"""Every page of the lab in a real browser: it loads, its controls work by keyboard, nothing overlaps or leaves."""

import contextlib

import pytest

from lab_browser import CHROMIUM, OVERLAPS, UP, Watch, address, begun, living, outlived, served
from quoin.lab.catalog import EXTRA_PAGES, PAGES, page_path
from quoin.lab.parts.page import exhibits_of
from quoin.lab.parts.style import style_sheet
from quoin.lab.parts.widget import answer
from test_lab_pages import ends

pytestmark = pytest.mark.deep

BUILT = [name for name in PAGES if page_path(name).exists()]
WAIT = 120_000  # milliseconds: a bound against waiting for ever, not a measurement


@pytest.fixture(scope="module")
def browser():
    assert CHROMIUM, "the lab's tests need chromium: apt-get install chromium"
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    with served(cache=str(tmp_path_factory.mktemp("cache"))) as url:
        yield url


def visit(browser, lab, path, width=1000, scheme="light"):
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watch = Watch(page)
    page.goto(address(lab, path))
    page.locator(UP).first.wait_for(timeout=WAIT)
    return page, watch


def settle(page):
    """Wait until every exhibit is there and has its picture or says what it needs."""
    page.locator(".rest").last.wait_for(timeout=WAIT)
    page.wait_for_timeout(300)


@pytest.mark.parametrize("name", [*BUILT, *EXTRA_PAGES])
def test_a_page_in_light_and_dark_and_by_keyboard(browser, lab, name):
    page, watch = visit(browser, lab, f"{name}/")
    if name != "runs":
        settle(page)
    for scheme, color in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(20, 20, 20)")):
        page.emulate_media(color_scheme=scheme)
        page.wait_for_timeout(1000)  # marimo mounts its widgets anew
        paper = page.locator(".quoin-lab").first.evaluate("each => getComputedStyle(each).backgroundColor")
        assert paper == color
        assert page.evaluate(OVERLAPS) == []
    if name in BUILT:
        assert sum(moved_by_keyboard(page, exhibit) for exhibit in page.locator(".exhibit").all()) >= 3
    assert watch.said == []
    assert watch.outside == []
    page.close()


@pytest.mark.parametrize("name", BUILT)
def test_words_in_pictures_stay_inside_and_apart_at_every_end(browser, name):
    pictures = []
    for exhibit in (each for each in exhibits_of(name) if not each.needs):
        states = [{}, exhibit.surprise_at, *({c.name: value} for c in exhibit.controls for value in ends(c))]
        for number, state in enumerate(states):
            inside = f'<div class="stage">{answer(exhibit, state)["svg"]}</div>'
            pictures.append(
                f'<section class="exhibit" id="{exhibit.slug} {number}" style="width: 672px">{inside}</section>'
            )
    page = browser.new_page(viewport={"width": 1000, "height": 900})
    page.set_content(f'<style>{style_sheet()}</style><div class="quoin-lab">{"".join(pictures)}</div>')
    assert page.evaluate(OVERLAPS) == []
    page.close()


CHANGED = (
    "([each, before]) => [...each.querySelectorAll('.stage svg, .numbers')].map(e => e.outerHTML).join() !== before"
)


def moved_by_keyboard(page, exhibit):
    """Whether the exhibit has a control; its first one must change the picture or its numbers."""
    if exhibit.locator(".wanting:not([hidden])").count():
        return False  # it needs a trained model first
    hand = exhibit.locator(
        ".handle, .paint, .side input[type=range], .side input[type=checkbox], .side select, .side button"
    )
    if not hand.count():
        return False
    before = exhibit.locator(".stage svg, .numbers").evaluate_all("all => all.map(each => each.outerHTML).join()")
    control = hand.first
    control.focus()
    kind = control.evaluate("each => each.dataset.name ? 'handle' : each.dataset.paint ? 'paint' : each.type")
    at_end = kind == "range" and control.evaluate("each => each.value === each.max")
    keys = {
        "handle": ["ArrowLeft", "ArrowRight", "ArrowUp"],  # one of them moves it, wherever it stands
        "range": ["ArrowLeft" if at_end else "ArrowRight"],
        "select-one": ["ArrowDown"],
    }
    from playwright.sync_api import TimeoutError

    *first, last = keys.get(kind, ["Space"])
    for key in first:  # one at a time: the second could undo what the first has done
        page.keyboard.press(key)
        with contextlib.suppress(TimeoutError):
            page.wait_for_function(CHANGED, arg=[exhibit.element_handle(), before], timeout=10_000)
            return True
    page.keyboard.press(last)
    page.wait_for_function(CHANGED, arg=[exhibit.element_handle(), before], timeout=WAIT)
    return True


@pytest.mark.parametrize("width", [400, 1600])
@pytest.mark.parametrize(
    "name", [each for each in ("autodiff", "attention", "language", "generative") if each in BUILT]
)
def test_narrow_and_wide(browser, lab, name, width):
    page, _ = visit(browser, lab, f"{name}/", width=width)
    settle(page)
    assert page.evaluate(OVERLAPS) == []
    page.close()


def test_a_link_is_the_state(browser, lab):
    page, _ = visit(browser, lab, "attention/?at=why-the-root&d=64&printed=1")
    exhibit = page.locator("#why-the-root")
    exhibit.locator(".surprise:not([hidden])").wait_for(timeout=WAIT)
    assert exhibit.locator("input[type=checkbox]").is_checked()
    exhibit.locator("input[type=range]").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_function("() => location.search.includes('d=128')", timeout=WAIT)
    assert "printed=1" in page.url
    assert "token" not in page.url
    page.close()


def test_a_link_to_an_item_leads_to_the_exhibit_that_shows_it(browser, lab):
    page, _ = visit(browser, lab, "attention/?item=ZE25")
    settle(page)
    assert "item=" not in page.url
    top = page.locator("#what-may-be-seen").bounding_box()["y"]
    assert -200 < top < 600  # in sight, below three other headings
    page.close()


def test_steps_end_where_there_is_nothing_left_to_step_to(browser, lab):
    page, _ = visit(browser, lab, "autodiff/")
    exhibit = page.locator("#where-does-a-derivative-go")
    exhibit.locator(".buttons output:text-is('0 of 4')").wait_for(timeout=WAIT)  # x*y + sin(x): four nodes back
    for taken in range(1, 5):
        exhibit.locator(".buttons button").first.click()
        exhibit.locator(f".buttons output:text-is('{taken} of 4')").wait_for(timeout=WAIT)
    assert exhibit.locator(".buttons button").first.is_disabled()
    page.close()


def test_dragging_a_handle_moves_the_picture(browser, lab):
    from playwright.sync_api import expect

    page, _ = visit(browser, lab, "attention/")
    handle = page.locator("#ask .handle")
    handle.wait_for(timeout=WAIT)
    before, box = handle.get_attribute("aria-valuetext"), handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] - 60, box["y"] + 60, steps=5)
    page.mouse.up()
    expect(handle).not_to_have_attribute("aria-valuetext", before, timeout=WAIT)
    page.close()


def test_keys_that_are_quicker_than_the_picture_all_count(browser, lab):
    page, _ = visit(browser, lab, "attention/")
    handle = page.locator("#ask .handle")
    handle.wait_for(timeout=WAIT)
    begin = [float(handle.get_attribute(name)) for name in ("data-x", "data-y")]
    # all at once: between two calls a new picture may come, and a key on the handle of the old one is nobody's
    page.locator("#ask").evaluate(
        """(each) => ["ArrowRight", "ArrowUp", "ArrowRight"].forEach((key) => {
            const pressed = new KeyboardEvent("keydown", { key, bubbles: true, composed: true });
            each.querySelector(".handle").dispatchEvent(pressed);
        })"""
    )
    page.wait_for_function("() => location.search.includes('at=ask')", timeout=WAIT)  # the hand rests
    page.wait_for_timeout(1000)
    end = [float(handle.get_attribute(name)) for name in ("data-x", "data-y")]
    across, up = end[0] - begin[0], end[1] - begin[1]
    low, high = page.locator("#ask svg.quoin").evaluate("each => JSON.parse(each.dataset.frames)[0].x")
    assert across == pytest.approx(2 * (high - low) / 50, rel=1e-3)
    assert up > 0
    page.close()


def test_the_lab_ends_while_a_page_is_open(browser, tmp_path):
    process, url = begun(tmp_path)
    page, _ = visit(browser, url, "attention/")
    page.locator("#ask footer button:has-text('hold')").wait_for(timeout=WAIT)  # claims were checked, in a process
    assert len(living(process.pid)) >= 2
    process.terminate()
    assert process.wait(60) == 0
    process.stdout.close()
    assert outlived(process.pid) == []
    page.close()


def test_two_tabs_do_not_share_a_state(browser, lab):
    one, _ = visit(browser, lab, "attention/")
    two, _ = visit(browser, lab, "attention/")
    for page in (one, two):
        page.locator("#why-the-root .numbers dd").first.wait_for(timeout=WAIT)
    before = two.locator("#why-the-root .numbers").inner_text()
    one.locator("#why-the-root input[type=range]").focus()
    one.keyboard.press("ArrowRight")
    one.locator("#why-the-root .stage[data-shown='1']").wait_for(timeout=WAIT)
    assert one.locator("#why-the-root .numbers").inner_text() != before
    assert two.locator("#why-the-root .numbers").inner_text() == before
    one.close()
    two.close()


def test_runs_are_opened_and_asked(browser, tmp_path):
    from quoin.cli import main

    words = ["--epochs", "1", "--runs", str(tmp_path), "--num-threads", "1"]
    assert main(["train", "lenet", *words]) == 0
    assert main(["train", "mlp", "--data", "iris", *words]) == 0
    killed = tmp_path / "killed"
    killed.mkdir()
    with served(str(tmp_path / "lenet-1"), str(tmp_path / "mlp-1")) as url:
        page, watch = visit(browser, url, "runs/")
        asked = page.locator("#what-is-it")
        asked.locator("select").wait_for(timeout=WAIT)
        asked.locator("select").select_option("painted by you")
        asked.locator("[data-cell='27']").click(timeout=WAIT)
        asked.locator(".stage[data-shown='2']").wait_for(timeout=WAIT)
        assert page.locator("#curves svg.quoin").count() == 1
        assert page.locator("#your-row .numbers dd").first.inner_text()
        assert page.evaluate(OVERLAPS) == []
        assert watch.said == []
        assert watch.outside == []
        page.close()
