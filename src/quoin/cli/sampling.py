"""`quoin generate` for models of images and of points: a sheet, a cloud, a denoising strip or a latent traversal,
written to a file."""

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from quoin.cli.output import print_json
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from torch import Generator, Tensor

    from quoin.plot import Plot
    from quoin.runs import Run
    from quoin.runs.kinds.generation import SamplingOptions, TrainedGenerator

__all__ = ["generate_samples"]

PICTURES, NUMBERS = (".png", ".svg", ".html"), ".npy"
MAX_PLOTTED = 10_000  # images or points of a picture; more would be specks
SHEET, POINTS = 64, 1000  # images of a sheet, points of a cloud or a strip: as in a report
STRIP, COLUMNS, ROWS = 8, 8, 8  # images of a strip, its columns, rows of a traversal
STEPS = 7  # values of a latent that is traversed, zero among them
SAMPLING_FLAGS = ("class", "num_steps", "guidance_scale", "sampler", "temperature")  # that a model may take or not


class Samples(NamedTuple):
    """What was drawn from the model, and how it looks."""

    numbers: "Tensor"
    picture: "Callable[[], Plot]"


def generate_samples(opened: "Run", parsed: argparse.Namespace) -> int:
    if parsed.strip and parsed.traverse:
        raise UserError("--strip and --traverse are two pictures: leave one of them out")
    if parsed.traverse and (
        given := [flag for flag in ("num_samples", *SAMPLING_FLAGS) if vars(parsed)[flag] is not None]
    ):
        flag = f"--{given[0].replace('_', '-')}"
        raise UserError(
            f"--traverse decodes a grid of latents and draws no samples, but {flag} was given: leave one of them out"
        )
    out = _checked(parsed)
    from quoin.data import ImageInfo, keyed_generator

    run: TrainedGenerator = opened.expect("generate")  # type: ignore[assignment]
    generator = keyed_generator("generate", parsed.seed or 0)
    if parsed.out is None:
        opened.folder.expect_output(out.name)  # told now, not after the work
    usual = (STRIP if parsed.strip else SHEET) if isinstance(run.data_info, ImageInfo) else POINTS
    num_samples = usual if parsed.num_samples is None else parsed.num_samples
    began = time.perf_counter()
    if parsed.traverse:
        made, what = _traversed(run, generator), "latent traversal"
    elif parsed.strip:
        made, what = (
            _strip(run, num_samples, generator, _sampling_options(parsed)),
            f"{_many(num_samples)} from noise on",
        )
    else:
        made, what = _sheet(run, num_samples, generator, _sampling_options(parsed)), _many(num_samples)
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


def _many(num_samples: int) -> str:
    return f"{num_samples:,} sample{'s' * (num_samples != 1)}"


def _checked(parsed: argparse.Namespace) -> Path:
    """Where to write, looked at before the work and not after it."""
    num_samples = 1 if parsed.num_samples is None else parsed.num_samples
    if num_samples < 1:
        raise UserError(f"-n expects at least 1 sample to draw, got {num_samples}")
    name = "strip.png" if parsed.strip else "traversal.png" if parsed.traverse else "samples.png"
    out: Path = parsed.out or parsed.folder / name
    if out.suffix.lower() not in (*PICTURES, NUMBERS):
        raise UserError(
            f"--out expects a name ending in .png, .svg, .html or .npy, got {format_value(out.name)}: change its ending"
        )
    if out.suffix.lower() != NUMBERS and num_samples > MAX_PLOTTED:
        raise UserError(
            f"-n {num_samples} is more than a picture can show, {MAX_PLOTTED}: write numbers with --out "
            "samples.npy, or draw fewer"
        )
    # os.path, not Path: a name too long to be a file's is then no folder
    if parsed.out is not None and (not os.path.isdir(out.parent) or os.path.isdir(out)):
        reason = "it is a folder" if os.path.isdir(out) else "no such folder"
        raise UserError(f"{out} could not be written ({reason}): choose another place with --out")
    return out


def _sampling_options(parsed: argparse.Namespace) -> "SamplingOptions":
    from quoin.runs.kinds.generation import SamplingOptions

    return SamplingOptions(
        label=vars(parsed)["class"],
        num_steps=parsed.num_steps,
        guidance_scale=parsed.guidance_scale,
        sampler=None if parsed.sampler is None else _sampler(parsed.sampler),
        temperature=parsed.temperature,
    )


def _sampler(name: str) -> Callable[..., Any]:
    from quoin import generate

    known = {
        "ddpm": generate.sample_ddpm,
        "ddim": generate.sample_ddim,
        "euler": generate.sample_euler,
        "heun": generate.sample_heun,
        "dpm-solver-2": generate.sample_dpm_solver_2,
        "langevin": generate.annealed_langevin,
    }
    if name not in known:
        raise UserError(f"--sampler {format_value(name)}: {did_you_mean(name, known)}")
    return known[name]


def _sheet(run: "TrainedGenerator", num_samples: int, generator: "Generator", options: "SamplingOptions") -> Samples:
    from quoin import plot

    samples = run.sample(num_samples, generator=generator, options=options)

    def picture() -> "Plot":
        if samples.ndim == 4:
            return plot.image_sheet(samples.clamp(0, 1), smooth=_is_smooth(run))
        return plot.scatter_panels({_many(num_samples): _in_plane(samples, samples)})

    return Samples(samples, picture)


def _strip(run: "TrainedGenerator", num_samples: int, generator: "Generator", options: "SamplingOptions") -> Samples:
    from torch import linspace

    from quoin import plot

    times, states = run.sample_path(num_samples, generator=generator, options=options)

    def picture() -> "Plot":
        indices = linspace(0, len(times) - 1, min(len(times), COLUMNS)).round().int().tolist()
        if states.ndim == 5:
            names = [f"{times[index]:.4g}" for index in indices]
            images = states[indices].transpose(0, 1).clamp(0, 1)
            label = "time t, from noise to image"
            return plot.image_table(images, column_labels=names, x_label=label, smooth=True)
        last = states[-1]
        return plot.scatter_panels({f"time {times[index]:.4g}": _in_plane(states[index], last) for index in indices})

    return Samples(states, picture)


def _is_smooth(run: "TrainedGenerator") -> bool:
    """A model that samples pixel by pixel shows its pixels."""
    from quoin.generate import PixelSampler

    return not isinstance(run.model, PixelSampler)


def _in_plane(points: "Tensor", like: "Tensor") -> "Tensor":
    """Points of the plane as they are; others along the principal axes of `like`."""
    from quoin.tasks.points import Plane

    return points if like.shape[1] == 2 else Plane.fit(like).project(points)


def _traversed(run: "TrainedGenerator", generator: "Generator") -> Samples:
    from quoin import plot

    values, images = run.traverse(ROWS, STEPS, generator=generator)
    names, ends = [f"latent {row + 1}" for row in range(len(images))], [f"{float(value):+.1f}" for value in values]
    return Samples(
        images,
        lambda: plot.image_table(
            images.clamp(0, 1), row_labels=names, column_labels=ends, x_label="value of the latent", smooth=True
        ),
    )


def _write(out: Path, made: Samples) -> None:
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
        raise UserError(f"{out} could not be written ({error.strerror}): choose another place with --out") from None
