"""The site's generated pages: every item of the notes, every public name, every recipe and benchmark is there, with
links that lead somewhere; and the check of links sees what is wrong. The whole build is a deep test."""

import ast
import dataclasses
import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import quoin
from generate import configuration, titled, tutorial_pages
from generator.bench import bench_pages
from generator.docstrings import docstring_page, notes_ids, summary
from generator.links import check_site
from generator.notes_map import notes_pages
from generator.public_names import public_names
from generator.recipes import recipe_pages
from generator.reference import reference_pages
from generator.sources import source_html
from generator.text import heading, prose
from quoin.bench.benchmarks import BENCHMARKS
from quoin.notes import entries
from quoin.runs import find_recipe, recipe_names

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def notes():
    return notes_pages()


@pytest.fixture(scope="module")
def reference():
    return reference_pages()


def exported() -> set[str]:
    """Every name that a package or a module beside the packages exports, read from its `__all__`."""
    source = Path(quoin.__file__).parent
    found = set()
    for path in [*source.rglob("__init__.py"), *source.glob("*.py")]:
        module = ".".join(path.relative_to(source.parent).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found |= {f"{module}.{name}" for name in ast.literal_eval(node.value)}
    return found - {"quoin.__version__"}


# ---- what must be there --------------------------------------------------------------------------------------------


def section(page: str, anchor: str) -> str:
    """What stands under the heading with this anchor."""
    return page.partition(f"{{ #{anchor} }}\n")[2].partition("\n#")[0]


def test_every_item_is_on_the_page_of_its_area(notes, reference):
    assert len(entries()) == 641
    anchors = {(page, anchor) for page, text in reference.items() for anchor in re.findall(r"\{ #(\S+) \}", text)}
    for entry in entries():
        said = section(notes[f"notes/area-{entry.area}.md"], entry.id)
        assert said.startswith('\n<dl class="item">'), entry.id
        for path in entry.implementations:
            linked = re.search(rf'href="\.\./(reference/\S+?)\.html#({re.escape(path)})"', said)
            assert linked is not None, (entry.id, path)
            assert (f"{linked[1]}.md", path) in anchors, path
        assert said.count("<dt>claim</dt>") == len(entry.claims) == said.count("source/quoin/notes/claims/"), entry.id
        assert said.count("<dt>figure</dt>") == len(entry.figures), entry.id
        for name in entry.recipes:
            assert f'href="../recipes/{name}.html"' in said, entry.id


def test_a_definition_stands_before_its_fast_form(notes):
    said = section(notes["notes/area-11.md"], "D2.2-9")  # multi-head attention
    definition, fast = said.index("<dt>definition</dt>"), said.index("<dt>fast form</dt>")
    assert definition < said.index("multi_head_attention_definition") < fast < said.index("layers.MultiHeadAttention<")


def test_every_figure_is_in_the_gallery(notes):
    shown = re.findall(r'<figure id="figure-(\S+?)">', notes["gallery.md"])
    ids = {id for entry in entries() if entry.figures for id in [entry.id]}
    assert len(shown) == len(set(shown)) >= 50
    assert {id for id in ids if f'#{id}"' not in notes["gallery.md"]} == set()


def test_every_public_name_is_in_the_reference(reference):
    names = public_names()
    assert {path for each in names for path in (each.path, *each.also)} == exported()
    for each in names:
        said = section(reference[each.page], each.path)
        assert f"```python\n{each.name}" in said, each.path
        assert f"{each.file.removesuffix('.py')}.html#L-{each.line}" in said, each.path
        index = reference[f"reference/{each.package}/index.md"]
        assert f'#{each.path}"' in index, each.path


def test_lines_of_the_source_are_where_the_reference_says():
    for each in public_names()[::97]:
        line = (ROOT / "src" / each.file).read_text().splitlines()[each.line - 1]
        assert each.path.rpartition(".")[2] in line or line.startswith("@"), each.path
        assert f'<i id="L-{each.line}">' in source_html(each.file)


def test_shapes_are_shown(reference):
    wick = section(reference["reference/prob/wick.md"], "quoin.prob.wick")
    assert 'covariance: Float[Tensor, "*batch d d"]' in wick
    assert "<code>covariance</code> (<code>*batch, d, d</code>) float" in wick
    assert "<code>returns</code> (<code>*batch</code>) float" in wick
    assert '<a href="../../notes/area-15.html#D5-21"><code>D5-21</code></a>' in wick
    assert "```pycon\n>>> wick(torch.tensor([[2.0]]), [0] * 4)" in wick


def test_every_recipe_has_a_page_with_its_options():
    pages = recipe_pages()
    assert set(pages) == {"recipes/index.md", *(f"recipes/{name}.md" for name in recipe_names())}
    for name in recipe_names():
        page, recipe = pages[f"recipes/{name}.md"], find_recipe(name)
        assert f'href="{name}.html"' in pages["recipes/index.md"]
        assert f"quoin train {name}\n" in page
        assert str(recipe.target) in page
        for field in dataclasses.fields(recipe.options):
            assert f"<code>--{field.name.replace('_', '-')}</code>" in page, (name, field.name)
    assert "0.0248 ± 0.0009" in pages["recipes/vae.md"]


def test_every_benchmark_is_listed():
    page = bench_pages()["bench.md"]
    for benchmark in BENCHMARKS:
        assert f"<code>{benchmark.name}</code>" in page or f"#bench-{benchmark.name}" in page, benchmark.name


def test_the_contents_name_pages_that_are_there(notes, reference):
    made = {*notes, *reference, *recipe_pages(), *bench_pages(), "contributing.md", "changelog.md"}
    by_hand = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert not made & by_hand  # neither would overwrite the other

    def paths(item) -> list[str]:
        if isinstance(item, str):
            return [item]
        return [path for inner in (item.values() if isinstance(item, dict) else item) for path in paths(inner)]

    listed = paths(configuration(tutorial_pages())["nav"])
    assert set(listed) - made - by_hand - set(tutorial_pages()) == set()
    assert by_hand - set(listed) == set()  # and no page is out of reach


# ---- text ----------------------------------------------------------------------------------------------------------


def test_no_character_of_a_title_is_markup():
    assert heading("w* < [x](y) _z_ {#a}", 2, "Z1.1") == (
        "## w&#42; &#60; &#91;x&#93;&#40;y&#41; &#95;z&#95; &#123;&#35;a&#125; { #Z1.1 }"
    )
    assert prose("if a < b & `c<d>`") == "if a &lt; b &amp; <code>c&lt;d&gt;</code>"


def test_a_page_says_its_title_as_text():
    page = f"{heading('`w_i`: a < b', 1)}\n\nmore"
    assert titled(page) == f'---\ntitle: "w_i: a < b"\n---\n\n{page}\n'


def test_a_docstring_in_all_its_parts():
    text = """Sum of `x`, a < b.

    More of it:

        y = Σ_i x_i*x_i

    Args:
        x: The first,
            over two lines.
        key_dim: The second.

    >>> f(1)
    2

    Notes: Z3.1, D1.2-3.
    """
    page = docstring_page(text, {"x": "x.html"}.get, {"Z3.1": "a.html#Z3.1"}.get)
    assert summary(text) == "Sum of `x`, a < b."
    assert notes_ids(text) == ("Z3.1", "D1.2-3")
    assert '<p>Sum of <a href="x.html"><code>x</code></a>, a &lt; b.</p>' in page
    assert "```text\ny = Σ_i x_i*x_i\n```" in page
    assert "<dt><code>x</code></dt><dd>The first, over two lines.</dd>" in page
    assert "<dt><code>key_dim</code></dt><dd>The second.</dd>" in page
    assert "```pycon\n>>> f(1)\n2\n```" in page
    assert 'Notes: <a href="a.html#Z3.1"><code>Z3.1</code></a>, <code>D1.2-3</code>' in page
    assert page.count("Notes:") == 1


# ---- the check of links --------------------------------------------------------------------------------------------

GOOD = '<h1 id="top">A</h1><a href="sub/b.html#there">b</a><a href="#top">top</a><img src="p.svg"><a href="sub/">s</a>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "a.html").write_text(GOOD)
    (tmp_path / "sub" / "b.html").write_text(
        '<p id="there">B</p><a href="../a.html">a</a><a href="https://x.org">x</a>'
    )
    (tmp_path / "sub" / "index.html").write_text("<p>index</p>")
    (tmp_path / "p.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"><path fill="url(#g)"/></svg>')
    return tmp_path


def test_a_whole_site_has_no_problem(site):
    report = check_site(site)
    assert report.problems == []
    assert (report.pages, report.links) == (3, 7)
    assert str(report).startswith("3 pages, 7 links, 0 broken, size 0.0 MB")


@pytest.mark.parametrize(
    ("planted", "seen"),
    [
        ('<a href="gone.html">x</a>', "gone.html: no such file"),
        ('<a href="sub/b.html#gone">x</a>', "b.html#gone: no such anchor"),
        ('<a href="#gone">x</a>', "#gone: no such anchor"),
        ('<a href="../outside.html">x</a>', "no such file"),
        ('<a href="/a.html">x</a>', "no such file"),
        ('<a href="javascript:go()">x</a>', "a scheme"),
        ('<img src="gone.png">', "loads gone.png: no such file"),
        ('<script src="https://unpkg.com/x"></script>', "from elsewhere"),
        ('<script src="//cdn.org/x.js"></script>', "from elsewhere"),
        ('<link rel="stylesheet" href="https://fonts.org/f.css">', "from elsewhere"),
        ('<link rel="preconnect" href="https://fonts.org">', "from elsewhere"),
        ("<style>@import 'https://x.org/a.css';</style>", "from elsewhere"),
        ('<p style="background: url(https://x.org/a.png)">x</p>', "from elsewhere"),
        ('<img srcset="p.svg 1x, https://x.org/a.png 2x">', "from elsewhere"),
    ],
)
def test_what_is_wrong_is_seen(site, planted, seen):
    (site / "a.html").write_text(GOOD + planted)
    problems = check_site(site).problems
    assert len(problems) == 1
    assert problems[0].startswith("a.html: ")
    assert seen in problems[0]


def test_style_sheets_and_pictures_are_looked_into(site):
    (site / "s.css").write_text("@font-face { src: url('https://fonts.org/x.woff2'); }")
    (site / "p.svg").write_text("<svg><style>@import 'https://x.org/a.css';</style></svg>")
    assert sorted(problem.partition(":")[0] for problem in check_site(site).problems) == ["p.svg", "s.css"]


# ---- the whole site ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    out = tmp_path_factory.mktemp("built") / "site"
    command = [sys.executable, str(ROOT / "docs" / "generate.py"), "--out", str(out)]
    done = subprocess.run(command, text=True, capture_output=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert re.search(r"\d+ pages, [\d,]+ links, 0 broken, size [\d.]+ MB\n\Z", done.stdout)
    return out


LOOKED_AT = (
    "index.html",
    "start.html",
    "notes/area-11.html",
    "gallery.html",
    "reference/prob/wick.html",
    "recipes/mlp.html",
)


@pytest.fixture(params=["served", "from files"])
def address(request, built):
    if request.param == "from files":
        yield f"file://{built}/"
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(built)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format, *args) -> None:
        pass


@pytest.mark.deep
def test_in_a_browser_nothing_comes_from_elsewhere_and_the_search_finds(address):
    from playwright.sync_api import sync_playwright

    asked, errors = [], []
    with sync_playwright() as playwright:
        installed = shutil.which("chromium") or shutil.which("google-chrome")  # else playwright's own
        browser = playwright.chromium.launch(executable_path=installed, args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        for name in LOOKED_AT:
            page.goto(address + name)
            page.wait_for_load_state("networkidle")
        page.keyboard.press("/")
        page.get_by_placeholder("Search").last.fill("RotaryEmbedding")  # of which the last page says nothing
        page.get_by_text("RotaryEmbedding").first.wait_for(timeout=60_000)
        browser.close()
    assert [url for url in asked if not url.startswith((address, "data:", "blob:", "about:"))] == []
    assert errors == []
    assert len(asked) > len(LOOKED_AT)
