"""Every recipe with a model by every form: `python -m quoin.runs.export.table`, as `make exports` has it.

Each recipe is trained for a few steps into a folder that is kept, exported by each form, and compared; what is done
already is not done again. The table goes into docs/exports.md between its markers.
"""

import argparse
import json
import re
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from quoin.errors import UserError

__all__ = ["BEGIN", "END", "SMALL_SET", "export_recipe", "main", "table_text", "write_table"]

BEGIN, END = "<!-- exports: begin -->", "<!-- exports: end -->"
FORMS = ("onnx", "torch", "huggingface", "safetensors")
SMALL_SET = ("mlp", "lenet", "transformer-lm", "gru-lm", "vae")  # of different kinds, for `make deep`
STEPS = 2


def export_recipe(name: str, folder: Path, forms: Sequence[str] = FORMS) -> dict[str, Any]:
    """Train a recipe for some steps into `folder`, export it by each form, and tell what came of it."""
    from quoin.runs import Run, RunConfig, fit_recipe
    from quoin.runs.catalog import find_recipe
    from quoin.runs.run_label import RunLabel

    path = folder / name
    if not (path / "result.json").exists():
        shutil.rmtree(path, ignore_errors=True)
        recipe = find_recipe(name)
        config = RunConfig(max_steps=STEPS)
        fit_recipe(recipe, recipe.options(), config, folder, label=RunLabel(name=name), show_progress=False)
    found: dict[str, Any] = {"kind": Run.open(path).kind}
    for form in forms:
        found[form] = _export(path, form, folder / f"{name}-{form}")
    return found


def _export(path: Path, form: str, out: Path) -> dict[str, Any]:
    from quoin.runs import Run
    from quoin.runs.export.export import export_run

    try:
        written = export_run(Run.open(path), form, out, force=True)
    except UserError as error:
        return {"miss": str(error)}
    except Exception as error:  # a fault of ours costs one cell, and the command's exit code
        return {"difference": float("nan"), "equal": False, "fault": f"{type(error).__name__}: {error}"[:400]}
    finally:
        shutil.rmtree(out, ignore_errors=True)  # the numbers stay
    worst = max((each.value for each in written.differences), default=0.0)
    return {"difference": worst, "equal": written.is_equal, "compared": len(written.differences)}


def table_text(results: dict[str, dict[str, Any]]) -> str:
    """The table in Markdown, and the words of the misses below it."""
    lines = ["| recipe | " + " | ".join(FORMS) + " |", "|---" * (1 + len(FORMS)) + "|"]
    misses: dict[str, dict[str, list[str]]] = {}  # by their words: the recipes, and the forms that each has not
    for name, found in sorted(results.items()):
        cells = []
        for form in FORMS:
            cell = found.get(form, {})
            if "miss" in cell:
                misses.setdefault(_plain(cell["miss"], name), {}).setdefault(name, []).append(form)
            cells.append(_cell(cell))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    told = [f"- {_listed(names)}: {words}" for words, names in misses.items()]
    return "\n".join([*lines, *(["", "What is missing, and why:", "", *told] if told else [])])


def _listed(names: dict[str, list[str]]) -> str:
    return ", ".join(f"{name} ({', '.join(forms)})" for name, forms in names.items())


def _plain(words: str, name: str) -> str:
    """The words of a miss without the folder and the recipe, so that those of one reason stand together."""
    without_folder = re.sub(rf"\S*/{re.escape(name)}\b", "the run", words)
    return re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", "the recipe", without_folder)


def _cell(cell: dict[str, Any]) -> str:
    if not cell:
        return ""
    if "miss" in cell:
        return "–"
    value = f"{float(cell['difference']):.1e}" if cell["difference"] else "0"
    return value if cell["equal"] else f"**{value}**"


def write_table(results: dict[str, dict[str, Any]], page: Path) -> None:
    """Put the table between the markers of a page, which must have both."""
    text = page.read_text(encoding="utf-8")
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        raise UserError(f"{page}: expected the markers {BEGIN} and {END}, each once: restore them")
    before, rest = text.split(BEGIN)
    page.write_text(f"{before}{BEGIN}\n{table_text(results)}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def exported_recipes() -> list[str]:
    """Every recipe; a study has weights, and so one form at least."""
    from quoin.runs import recipe_names

    return list(recipe_names())


def main(arguments: Iterable[str] | None = None) -> int:
    """Export what the words name, show each line as it comes, and write the page."""
    parser = argparse.ArgumentParser(description="Every recipe by every form, compared.")
    parser.add_argument("recipes", nargs="*", help="all unless given")
    parser.add_argument("--folder", type=Path, default=Path("build/exports"), help="where runs and results are kept")
    parser.add_argument("--page", type=Path, help="the page with the markers, such as docs/exports.md")
    asked = parser.parse_args(None if arguments is None else list(arguments))
    asked.folder.mkdir(parents=True, exist_ok=True)
    kept = asked.folder / "results.json"
    results: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    names = asked.recipes or exported_recipes()
    for number, name in enumerate(names, 1):
        if name not in results:
            print(f"{number}/{len(names)} {name} ...", file=sys.stderr, flush=True)
            results[name] = export_recipe(name, asked.folder)
            draft = kept.with_suffix(".draft")
            draft.write_text(json.dumps(results, indent=1), encoding="utf-8")
            draft.replace(kept)
        shown = "  ".join(f"{form} {_cell(results[name].get(form, {}))}" for form in FORMS)
        print(f"{number}/{len(names)} {name}: {shown}", flush=True)
    if asked.page is not None:
        write_table(results, asked.page)
    forms = [cell for found in results.values() for form, cell in found.items() if form in FORMS]
    return 0 if all(cell.get("equal", True) for cell in forms) else 1


if __name__ == "__main__":
    sys.exit(main())
