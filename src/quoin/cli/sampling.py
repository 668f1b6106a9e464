"""`quoin generate` for models of images and of points: a sheet, a cloud, a denoising strip or a latent traversal, written to a file."""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quoin.cli.show import print_json
from quoin.errors import Mistake, nearest, shown

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from quoin.plot import Drawing
    from quoin.runs import Run
    from quoin.runs.kinds.generation import Choices, TrainedGenerator

__all__ = ["draw_samples"]

PICTURES, NUMBERS = (".png", ".svg", ".html"), ".npy"
MOST_DRAWN = 10_000  # images or points of a picture; more would be specks
SHEET, POINTS = 64, 1000  # images of a sheet, points of a cloud or a strip: as in a report
STRIP, COLUMNS, ROWS = 8, 12, 16  # images of a strip, columns of a strip or a traversal, rows of a traversal
CHOICES = ("class", "steps", "guidance", "sampler", "temperature")  # that a model may take or not


class Made(NamedTuple):
    """What was drawn from the model, and how it looks."""

    numbers: "Tensor"
    picture: "Callable[[], Drawing]"


def draw_samples(opened: "Run", parsed: argparse.Namespace) -> int:
    if parsed.strip and parsed.traverse:
        raise Mistake("--strip and --traverse are two pictures: leave one of them out")
    if parsed.traverse and (given := [flag for flag in ("n", *CHOICES) if vars(parsed)[flag] is not None]):
        flag = "-n" if given[0] == "n" else f"--{given[0]}"
        raise Mistake(f"--traverse decodes a grid of latents and draws no samples, but {flag} was given: leave one of them out")
    out = _checked(parsed)
    from quoin.data import ImageFacts, keyed_generator

    run: TrainedGenerator = opened.expect("generate")  # type: ignore[assignment]
    generator = keyed_generator("generate", parsed.seed or 0)
    if parsed.out is None:
        opened.folder.expect_output(out.name)  # told now, not after the work
    usual = (STRIP if parsed.strip else SHEET) if isinstance(run.facts, ImageFacts) else POINTS
    count = usual if parsed.n is None else parsed.n
    began = time.perf_counter()
    if parsed.traverse:
        made, what = _traversed(run, generator), "latent traversal"
    elif parsed.strip:
        made, what = _strip(run, count, generator, _choices(parsed)), f"{_many(count)} from noise on"
    else:
        made, what = _sheet(run, count, generator, _choices(parsed)), _many(count)
    seconds = time.perf_counter() - began
    if parsed.out is None:
        opened.folder.save_output(out.name, made.picture().png())
    else:
        _write(out, made)
    if parsed.json:
        print_json({"run": str(parsed.folder), "file": str(out), "shape": list(made.numbers.shape), "seconds": seconds})
    else:
        print(f"{what} in {seconds:.1f} s: {out}")
    return 0


def _many(count: int) -> str:
    return f"{count:,} sample{'s' * (count != 1)}"


def _checked(parsed: argparse.Namespace) -> Path:
    """Where to write, looked at before the work and not after it."""
    count = 1 if parsed.n is None else parsed.n
    if count < 1:
        raise Mistake(f"-n expects at least 1 sample to draw, got {count}")
    name = "strip.png" if parsed.strip else "traversal.png" if parsed.traverse else "samples.png"
    out: Path = parsed.out or parsed.folder / name
    if out.suffix.lower() not in (*PICTURES, NUMBERS):
        raise Mistake(f"--out expects a name ending in .png, .svg, .html or .npy, got {shown(out.name)}: change its ending")
    if out.suffix.lower() != NUMBERS and count > MOST_DRAWN:
        raise Mistake(f"-n {count} is more than a picture can show, {MOST_DRAWN}: write numbers with --out samples.npy, or draw fewer")
    # os.path, not Path: a name too long to be a file's is then no folder
    if parsed.out is not None and (not os.path.isdir(out.parent) or os.path.isdir(out)):
        reason = "it is a folder" if os.path.isdir(out) else "no such folder"
        raise Mistake(f"{out} could not be written ({reason}): choose another place with --out")
    return out


def _choices(parsed: argparse.Namespace) -> "Choices":
    from quoin.runs.kinds.generation import Choices

    return Choices(
        label=vars(parsed)["class"],
        steps=parsed.steps,
        guidance=parsed.guidance,
        sampler=None if parsed.sampler is None else _sampler(parsed.sampler),
        temperature=parsed.temperature,
    )


def _sampler(name: str) -> Callable[..., Any]:
    from quoin import generate

    known = {
        "ddpm": generate.ddpm,
        "ddim": generate.ddim,
        "euler": generate.flow_euler,
        "heun": generate.flow_heun,
        "dpm-solver-2": generate.dpm_solver_2,
        "langevin": generate.annealed_langevin,
    }
    if name not in known:
        raise Mistake(f"--sampler {shown(name)}: {nearest(name, known)}")
    return known[name]


def _sheet(run: "TrainedGenerator", count: int, generator: "Generator", choices: "Choices") -> Made:
    from quoin import plot

    samples = run.sample(count, generator=generator, choices=choices)

    def picture() -> "Drawing":
        if samples.ndim == 4:
            return plot.image_sheet(samples.clamp(0, 1))
        if samples.shape[1:] == (2,):
            return plot.point_clouds({_many(count): samples})
        numbers = " × ".join(map(str, samples.shape[1:]))
        raise Mistake(f"a sample is {numbers} numbers, no image and no point in the plane: write them with --out samples.npy")

    return Made(samples, picture)


def _strip(run: "TrainedGenerator", count: int, generator: "Generator", choices: "Choices") -> Made:
    from torch import linspace

    from quoin import plot

    times, states = run.sample_path(count, generator=generator, choices=choices)

    def picture() -> "Drawing":
        places = linspace(0, len(times) - 1, min(len(times), COLUMNS)).round().int().tolist()
        if states.ndim == 5:
            names = [f"{times[place]:.4g}" for place in places]
            return plot.image_table(states[places].transpose(0, 1).clamp(0, 1), column_labels=names, x_label="time")
        return plot.point_clouds({f"time {times[place]:.4g}": states[place] for place in places})

    return Made(states, picture)


def _traversed(run: "TrainedGenerator", generator: "Generator") -> Made:
    from quoin import plot

    values, images = run.traverse(ROWS, COLUMNS, generator=generator)
    names, ends = [f"z{row + 1}" for row in range(len(images))], [f"{float(value):+.1f}" for value in values]
    return Made(images, lambda: plot.image_table(images.clamp(0, 1), row_labels=names, column_labels=ends, x_label="value of the latent"))


def _write(out: Path, made: Made) -> None:
    if out.suffix.lower() != NUMBERS:
        made.picture().save(out)
        return
    import io

    import numpy as np

    content = io.BytesIO()
    np.save(content, made.numbers.cpu().numpy(), allow_pickle=False)
    try:
        out.write_bytes(content.getvalue())
    except OSError as error:
        raise Mistake(f"{out} could not be written ({error.strerror}): choose another place with --out") from None
