"""The site: `make docs` runs this. It joins the pages written by hand (docs/**/*.md) with those read from the package,
has Zensical build them, and checks every link.

    python docs/generate.py [--out build/site] [--no-figures]

Nothing is fetched, now or when a page is read."""

import argparse
import html
import importlib
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from generator.bench import bench_pages
from generator.links import check_site
from generator.notes_map import notes_pages, plot_figures
from generator.recipes import recipe_pages
from generator.reference import reference_pages
from generator.sources import source_pages, source_style
from quoin.notes import areas

HERE = Path(__file__).parent
ROOT = HERE.parent
# What Zensical's plugin `offline` has a page fetch, to search when it was opened from a file. Ours is assets/worker.js.
SHIM = '<script src="https://unpkg.com/iframe-worker/shim"'
HOWTO = {
    "Your own data": "howto/data.md",
    "Your own code": "howto/code.md",
    "Experiments": "howto/experiments.md",
    "Language models and compression": "howto/language.md",
    "Generative models": "howto/generate.md",
    "Taking a model elsewhere": "howto/export.md",
    "Mathematics from Python": "howto/python.md",
    "GPUs": "howto/gpu.md",
    "Several processes": "processes.md",
    "Scaling": "scaling.md",
    "Exports": "exports.md",
    "Notebooks": "howto/notebooks.md",
    "The lab": "howto/lab.md",
}


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the site and check its links.")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "site", help="where the site goes")
    parser.add_argument(
        "--no-figures", action="store_true", help="without the figures, which take a minute: to look at prose"
    )
    parsed = parser.parse_args()
    sources = parsed.out.with_name(f"{parsed.out.name}-sources")
    for folder in (sources, parsed.out):
        shutil.rmtree(folder, ignore_errors=True)
    write_sources(sources, figures=not parsed.no_figures)
    build(sources, parsed.out.resolve())
    report = check_site(parsed.out.resolve())
    shown = report.problems[:50]
    print("\n".join([*shown, *(["..."] if len(report.problems) > len(shown) else []), str(report)]))
    return 1 if report.problems else 0


def write_sources(folder: Path, *, figures: bool = True) -> None:
    """All that Zensical reads: the pages, the pictures, its configuration."""
    pages = folder / "docs"
    for path in [*HERE.rglob("*.md"), *(HERE / "pictures").glob("*.*"), *(HERE / "assets").glob("*.*")]:
        target = pages / path.relative_to(HERE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    for name in ("CONTRIBUTING.md", "CHANGELOG.md"):
        shutil.copyfile(ROOT / name, pages / name.lower())
    tutorials = tutorial_pages()
    made = notes_pages() | recipe_pages() | bench_pages() | reference_pages() | source_pages() | tutorials
    made["assets/source.css"] = source_style()
    for path, text in made.items():
        target = pages / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(titled(text) if path.endswith(".md") else text, encoding="utf-8")
    if figures:
        plot_figures(pages)
    (folder / "mkdocs.yml").write_text(json.dumps(configuration(tutorials), indent=1), encoding="utf-8")


def titled(page: str) -> str:
    """The page with its title once more, as text: the search shows it beside what it found."""
    title = html.unescape(re.sub(r"<[^>]*>|`", "", _heading(page)))
    return f"---\ntitle: {json.dumps(title, ensure_ascii=False)}\n---\n\n{page.rstrip()}\n"


def tutorial_pages() -> dict[str, str]:
    """The lab's pages exported, still: `quoin.lab.still.stills()` gives the title and the HTML of each by name. None,
    where the package has no lab."""
    if importlib.util.find_spec("quoin.lab") is None or importlib.util.find_spec("quoin.lab.still") is None:
        return {}
    stills = importlib.import_module("quoin.lab.still").stills()
    return {f"tutorials/{name}.md": f"# {title}\n\n{still}" for name, (title, still) in stills.items()}


def configuration(tutorials: Mapping[str, str]) -> dict:
    """Zensical's, in the form of mkdocs.yml, of which JSON is a part; `tutorials` are pages by their paths."""
    nav: list[dict] = [
        {"Quoin": "index.md"},
        {"Start here": "start.md"},
        *([{"Tutorials": [{_heading(page): path} for path, page in tutorials.items()]}] if tutorials else []),
        {"How to": [{title: path} for title, path in HOWTO.items()]},
        {
            "The notes": [
                {"The map": "notes/index.md"},
                *({f"{number} {name}": f"notes/area-{number}.md"} for number, name in areas().items()),
            ]
        },
        {"Gallery": "gallery.md"},
        {"Recipes": "recipes/index.md"},
        {"Benchmarks": [{"What is measured": "bench.md"}, {"What was measured": "measured.md"}]},
        {"API reference": "reference/index.md"},
        {
            "About": [
                {"Design": "design.md"},
                {"Glossary": "glossary.md"},
                {"Contributing": "contributing.md"},
                {"Changes": "changelog.md"},
                {"Citing": "citing.md"},
            ]
        },
    ]
    return {
        "site_name": "Quoin",
        "site_description": "Deep learning, block by block.",
        "docs_dir": "docs",
        "site_dir": "site",
        "use_directory_urls": False,
        "theme": {
            "name": "material",
            "font": False,
            "palette": [
                {
                    "media": "(prefers-color-scheme: light)",
                    "scheme": "default",
                    "toggle": {"icon": "lucide/sun", "name": "Dark"},
                },
                {
                    "media": "(prefers-color-scheme: dark)",
                    "scheme": "slate",
                    "toggle": {"icon": "lucide/moon", "name": "Light"},
                },
            ],
            "features": ["navigation.indexes", "navigation.top", "content.code.copy", "search.highlight"],
        },
        "plugins": ["search", "offline"],
        "extra_css": ["assets/site.css"],
        "markdown_extensions": [
            "attr_list",
            "md_in_html",
            "tables",
            "pymdownx.highlight",
            "pymdownx.superfences",
            {"toc": {"toc_depth": 2, "permalink": True}},
        ],
        "nav": nav,
    }


def _heading(page: str) -> str:
    return page.partition("\n")[0].removeprefix("# ")


def build(sources: Path, out: Path) -> None:
    """Let Zensical build, and put the site in its place."""
    zensical = Path(sys.executable).with_name("zensical")
    subprocess.run([zensical, "build", "--clean", "--config-file", "mkdocs.yml"], cwd=sources, check=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    shutil.move(sources / "site", out)
    (out / "404.html").unlink()  # for servers that show it at any depth, by addresses from the root; this one has none
    for page in out.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        if SHIM in text:
            up = "../" * (len(page.relative_to(out).parts) - 1)
            page.write_text(text.replace(SHIM, f'<script src="{up}assets/worker.js"'), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
