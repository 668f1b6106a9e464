"""`quoin inspect`: the layers of a trained run as a table, and what they do as pictures on a page."""

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.arguments import code_access
from quoin.cli.output import print_json, print_table
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.plot import Plot
    from quoin.train import RunFolder

__all__ = ["inspect"]


def inspect(parsed: argparse.Namespace) -> int:
    formats = ("html", "png", "svg")
    if parsed.format not in formats:
        raise UserError(f"--format {format_value(parsed.format)}: {did_you_mean(parsed.format, formats)}")
    if parsed.format == "html" and parsed.out is not None and parsed.out.suffix != ".html":
        raise UserError(
            f"--out expects a page, a file ending in .html, got {format_value(parsed.out.name)}; for a folder of "
            "pictures add --format"
        )
    if parsed.format == "html" and parsed.out is not None and not os.path.isdir(parsed.out.parent):
        raise UserError(f"{parsed.out} could not be written (no such folder): choose another place with --out")
    from quoin.runs import Run

    run = Run.open(parsed.folder, step=parsed.step, code=code_access(parsed))
    folder = run.folder
    if parsed.out is None:
        folder.expect_output(
            "inspect.html" if parsed.format == "html" else "inspect/any"
        )  # told now, not after the work
    found = run.inspect(layer=parsed.layer, rows=parsed.row, text=parsed.text)
    columns = ("layer", "kind", "output", "parameters", "zeros", "dead")
    rows = [
        (*each[:2], " × ".join(map(str, each.output_shape)), each.num_parameters, *_activity(each))
        for each in found.layers
    ]
    if parsed.format == "html":
        pages = _pages((parsed.out or Path("inspect.html")).name, folder.path.name, columns, rows, found)
        written = _write(pages, parsed.out and parsed.out.parent, folder)
    else:
        pictures = {f"{_slug(panel)}.{parsed.format}": _picture(panel.plot, parsed.format) for panel in found.panels}
        written = _write_pictures(pictures, parsed.out, folder)
    if parsed.json:
        layers = [each._asdict() for each in found.layers]
        print_json(
            {
                "run": str(parsed.folder),
                "layers": layers,
                "remarks": found.remarks,
                "files": [str(path) for path in written],
            }
        )
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
    from quoin.plot import AttentionPlot
    from quoin.train import report

    lead = " ".join(
        [
            "The layers of the trained model and their activations.",
            *(f"{each[0].upper()}{each[1:]}." for each in found.remarks),
        ]
    )
    table = report.table("Layers", columns, rows)
    note = (
        "<p>Of each ReLU: the fraction of its outputs that are exactly zero, and the units or channels that are "
        "zero for every example.</p>"
    )
    notes = [note] if any(each.zeros is not None for each in found.layers) else []
    apart = [panel for panel in found.panels if isinstance(panel.plot, AttentionPlot)]
    beside = {panel: f"{Path(file).stem}-{_slug(panel)}.html" for panel in apart}
    ways = (
        [report.links("Interactive attention maps", {panel.title: path for panel, path in beside.items()})]
        if beside
        else []
    )
    page = report.page(f"Inside {name}", lead, [table, *notes, *ways, *report.figures(lambda: found.panels)])
    pages = {file: page} | {path: panel.plot.html(f"{panel.title}, {name}") for panel, path in beside.items()}
    return {path: text.encode(errors="backslashreplace") for path, text in pages.items()}


def _write_pictures(pictures: dict[str, bytes], path: Path | None, folder: "RunFolder") -> list[Path]:
    if path is None:
        return _write({f"inspect/{name}": content for name, content in pictures.items()}, None, folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{path} could not be made ({error.strerror}): choose another place with --out") from None
    return _write(pictures, path, folder)


def _write(files: dict[str, bytes], path: Path | None, folder: "RunFolder") -> list[Path]:
    """Into the place that the user named, or beside the run, where no link is followed."""
    if path is None:
        return [folder.save_output(name, content) for name, content in files.items()]
    for name, content in files.items():
        try:
            (path / name).write_bytes(content)
        except OSError as error:
            raise UserError(
                f"{path / name} could not be written ({error.strerror}): choose another place with --out"
            ) from None
    return [path / name for name in files]


def _picture(figure: "Plot", format: str) -> bytes:
    return figure.png() if format == "png" else figure.svg().encode()


def _slug(panel) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", panel.title.lower())
