"""`quoin inspect`: the layers of a trained run as a table, and what they do as pictures on a page."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.show import print_json, print_table
from quoin.errors import Mistake, nearest, shown

if TYPE_CHECKING:
    from quoin.plot import Drawing
    from quoin.train import RunFolder

__all__ = ["inspect"]


def inspect(parsed: argparse.Namespace) -> int:
    formats = ("html", "png", "svg")
    if parsed.format not in formats:
        raise Mistake(f"--format {shown(parsed.format)}: {nearest(parsed.format, formats)}")
    if parsed.format == "html" and parsed.out is not None and parsed.out.suffix != ".html":
        raise Mistake(f"--out expects a page, a file ending in .html, got {shown(parsed.out.name)}; for a folder of pictures add --format")
    if parsed.format == "html" and parsed.out is not None and not os.path.isdir(parsed.out.parent):
        raise Mistake(f"{parsed.out} could not be written (no such folder): choose another place with --out")
    from quoin.runs import Run

    run = Run.open(parsed.folder, step=parsed.step)
    folder = run.folder
    if parsed.out is None:
        folder.expect_output("inspect.html" if parsed.format == "html" else "inspect/any")  # told now, not after the work
    found = run.inspect(layer=parsed.layer, rows=parsed.row)
    columns = ("layer", "kind", "output", "parameters", "zeros", "dead")
    rows = [(*each[:2], " × ".join(map(str, each.output_shape)), each.num_parameters, *_activity(each)) for each in found.layers]
    if parsed.format == "html":
        pages = _pages((parsed.out or Path("inspect.html")).name, folder.path.name, columns, rows, found)
        written = _write(pages, parsed.out and parsed.out.parent, folder)
    else:
        pictures = {f"{_slug(panel)}.{parsed.format}": _picture(panel.drawing, parsed.format) for panel in found.panels}
        written = _write_pictures(pictures, parsed.out, folder)
    if parsed.json:
        layers = [each._asdict() for each in found.layers]
        print_json({"run": str(parsed.folder), "layers": layers, "remarks": found.remarks, "files": [str(path) for path in written]})
        return 0
    print_table(columns, rows)
    print(f"\n{found.num_parameters:,} parameters")
    for remark in found.remarks:
        print(remark)
    for path in written:
        print(f"{'page' if parsed.format == 'html' else 'picture'}: {path}")
    return 0


def _activity(layer) -> tuple[str, int | None]:
    return "" if layer.zeros is None else f"{layer.zeros:.1%}", layer.dead


def _pages(file: str, name: str, columns, rows, found) -> dict[str, bytes]:
    """The page of the run, and beside it those of maps that are there to be pointed at, by their files' names."""
    from quoin.plot import AttentionDrawing
    from quoin.train import report

    lead = " ".join(["The layers of the trained model, and what they do.", *(f"{each[0].upper()}{each[1:]}." for each in found.remarks)])
    table = report.table("Layers", columns, rows)
    note = "<p>Of each ReLU: the share of its outputs that are exactly zero, and the units or channels that are zero for every row.</p>"
    notes = [note] if any(each.zeros is not None for each in found.layers) else []
    apart = [panel for panel in found.panels if isinstance(panel.drawing, AttentionDrawing)]
    beside = {panel: f"{Path(file).stem}-{_slug(panel)}.html" for panel in apart}
    ways = [report.links("Map by map, with every number", {panel.title: place for panel, place in beside.items()})] if beside else []
    page = report.page(f"Inside {name}", lead, [table, *notes, *ways, *report.figures(lambda: found.panels)])
    pages = {file: page} | {place: panel.drawing.html(f"{panel.title}, {name}") for panel, place in beside.items()}
    return {place: text.encode(errors="backslashreplace") for place, text in pages.items()}


def _write_pictures(pictures: dict[str, bytes], place: Path | None, folder: "RunFolder") -> list[Path]:
    if place is None:
        return _write({f"inspect/{name}": content for name, content in pictures.items()}, None, folder)
    try:
        place.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Mistake(f"{place} could not be made ({error.strerror}): choose another place with --out") from None
    return _write(pictures, place, folder)


def _write(files: dict[str, bytes], place: Path | None, folder: "RunFolder") -> list[Path]:
    """Into the place that the user named, or beside the run, where no link is followed."""
    if place is None:
        return [folder.save_output(name, content) for name, content in files.items()]
    for name, content in files.items():
        try:
            (place / name).write_bytes(content)
        except OSError as error:
            raise Mistake(f"{place / name} could not be written ({error.strerror}): choose another place with --out") from None
    return [place / name for name in files]


def _picture(drawing: "Drawing", format: str) -> bytes:
    return drawing.png() if format == "png" else drawing.svg().encode()


def _slug(panel) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", panel.title.lower())
