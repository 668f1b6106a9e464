"""`quoin inspect`: the layers of a trained run as a table, and what they do as pictures on a page."""

import argparse
import os
import re
from pathlib import Path

from quoin.cli.show import print_json, print_table
from quoin.errors import Mistake, nearest, shown

__all__ = ["inspect"]


def inspect(parsed: argparse.Namespace) -> int:
    formats = ("html", "png", "svg")
    if parsed.format not in formats:
        raise Mistake(f"--format {shown(parsed.format)}: {nearest(parsed.format, formats)}")
    if parsed.format == "html" and parsed.out is not None and parsed.out.suffix != ".html":
        raise Mistake(f"--out expects a page, a file ending in .html, got {shown(parsed.out.name)}; for a folder of pictures add --format")
    if parsed.format == "html" and parsed.out is not None and not os.path.isdir(parsed.out.parent):
        raise Mistake(f"{parsed.out} could not be written (no such folder): choose another place with --out")
    from quoin.recipes.running.inspecting import inspect_task
    from quoin.recipes.running.run import best_task

    folder, task = best_task(parsed.folder, step=parsed.step)
    found = inspect_task(task, parsed.folder, layer=parsed.layer, rows=parsed.row)
    columns = ("layer", "kind", "output", "parameters", "zeros", "dead")
    rows = [(*each[:2], " × ".join(map(str, each.output_shape)), each.num_parameters, *_activity(each)) for each in found.layers]
    if parsed.format == "html":
        written = _write_pages(parsed.out or folder.path / "inspect.html", folder.path.name, columns, rows, found)
    else:
        written = _write_pictures(parsed.out or folder.path / "inspect", parsed.format, found.panels)
    if parsed.json:
        layers = [each._asdict() for each in found.layers]
        print_json({"run": str(parsed.folder), "layers": layers, "remarks": found.remarks, "files": [str(path) for path in written]})
        return 0
    print_table(columns, rows)
    print(f"\n{sum(parameter.numel() for parameter in task.model.parameters()):,} parameters")  # type: ignore[attr-defined]
    for remark in found.remarks:
        print(remark)
    for path in written:
        print(f"{'page' if parsed.format == 'html' else 'picture'}: {path}")
    return 0


def _activity(layer) -> tuple[str, int | None]:
    return "" if layer.zeros is None else f"{layer.zeros:.1%}", layer.dead


def _write_pages(path: Path, name: str, columns, rows, found) -> list[Path]:
    """The page of the run, and beside it those of maps that are there to be pointed at."""
    from quoin.draw import AttentionDrawing
    from quoin.train import report

    lead = " ".join(["The layers of the trained model, and what they do.", *(f"{each[0].upper()}{each[1:]}." for each in found.remarks)])
    table = report.table("Layers", columns, rows)
    note = "<p>Of each ReLU: the share of its outputs that are exactly zero, and the units or channels that are zero for every row.</p>"
    notes = [note] if any(each.zeros is not None for each in found.layers) else []
    apart = [panel for panel in found.panels if isinstance(panel.drawing, AttentionDrawing)]
    beside = {panel: path.with_name(f"{path.stem}-{_slug(panel)}.html") for panel in apart}
    ways = [report.links("Map by map, with every number", {panel.title: place.name for panel, place in beside.items()})] if beside else []
    page = report.page(f"Inside {name}", lead, [table, *notes, *ways, *report.figures(lambda: found.panels)])
    pages = {path: page} | {place: panel.drawing.html(f"{panel.title}, {name}") for panel, place in beside.items()}
    for place, text in pages.items():
        try:
            place.write_text(text, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            raise Mistake(f"{place} could not be written ({error.strerror}): choose another place with --out") from None
    return list(pages)


def _write_pictures(folder: Path, format: str, panels) -> list[Path]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{folder} could not be made ({error.strerror}): choose another place with --out") from None
    return [panel.drawing.save(folder / f"{_slug(panel)}.{format}") for panel in panels]


def _slug(panel) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", panel.title.lower())
