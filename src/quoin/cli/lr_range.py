"""`quoin lr`, and `quoin train --lr auto`: a learning rate found by a range test before the run."""

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import AUTO, Parser, add_options, any_number, read_options, whole_number
from quoin.cli.output import print_json, print_table
from quoin.data import check_source_name
from quoin.errors import UserError, format_value

if TYPE_CHECKING:
    from quoin.runs.catalog import Recipe
    from quoin.runs.run_config import RunConfig

__all__ = ["add_lr", "auto_lr", "lr", "take_auto_lr", "with_found_lr"]

PICTURES = (".png", ".svg", ".html")


def auto_lr(recipe: "Recipe") -> dict[str, str]:
    """The options of `recipe` that take the word `auto`, and what it stands for: the learning rate of an optimizer."""
    from quoin.tasks.options import GradientOptions

    found = {"lr": "for the suggestion of a range test (see `quoin lr`)"}
    return found if issubclass(recipe.options, GradientOptions) else {}


def add_lr(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin lr`: the recipe, how far the test goes, and the flags of `quoin train`."""
    from quoin.runs.catalog import DEFAULT, find_recipe
    from quoin.runs.run_config import RunConfig

    reference = next((word for word in words[:1] if not word.startswith("-")), DEFAULT)
    recipe = find_recipe(reference)
    parser.add_argument(
        "recipe",
        nargs="?",
        default=DEFAULT,
        help=f"name of a recipe, as `quoin list` shows, or a file (default: {DEFAULT})",
    )
    parser.description = (
        "Find a learning rate by a range test.\n\n"
        "The recipe is trained for some steps while the learning rate rises geometrically, in place of its schedule. "
        "The loss falls,\n"
        "then diverges. A tenth of the learning rate at the least smoothed loss is suggested; `quoin train --lr "
        "auto` takes it.\n"
        "Nothing is written but the plot that --out names."
    )
    parser.epilog = """\
examples:
  quoin lr mlp --out lr.svg
  quoin lr mlp --data csv:my.csv --target label --batch-size 64
  quoin train mlp --lr auto"""
    parser.add_flag("--min-lr", "first learning rate (default: 1e-06)", "FLOAT", type=any_number, default=1e-6)
    parser.add_flag("--max-lr", "last learning rate (default: 10)", "FLOAT", type=any_number, default=10.0)
    parser.add_flag("--lr-steps", "steps from one to the other (default: 100)", "INT", type=whole_number, default=100)
    parser.add_flag("--out", "plot the loss by learning rate to a .svg, .png or .html file", "FILE", type=Path)
    add_json(parser)
    add_options(parser, recipe.options, f"options of {recipe.name}", without=("lr",))
    without = ("checkpoint_every", "max_steps", "log", "log_every", "processes", "shard")
    add_options(parser, RunConfig, "runtime options", without=without)
    parser.set_defaults(run=run_later("lr_range.lr"), first_recipe=reference)


def lr(parsed: argparse.Namespace) -> int:
    from quoin.runs.catalog import find_recipe
    from quoin.runs.run_config import RunConfig

    if parsed.recipe != parsed.first_recipe:
        raise UserError(f"the recipe comes first: quoin lr {format_value(parsed.recipe)[1:-1]} ...")
    recipe = find_recipe(parsed.recipe)
    options: Any = read_options(recipe.options, parsed)
    config = read_options(RunConfig, parsed)
    if hasattr(options, "data"):
        check_source_name(options.data)
    _check_out(parsed.out)
    from quoin.runs.lr_range import find_lr, plot_lr_range

    found = find_lr(
        recipe,
        options,
        config,
        min_lr=parsed.min_lr,
        max_lr=parsed.max_lr,
        num_steps=parsed.lr_steps,
        show_progress=not parsed.json,
    )
    if parsed.out is not None:
        plot_lr_range(found, f"Learning-rate range test of {recipe.name}").save(parsed.out)
    if parsed.json:
        print_json(
            {
                "recipe": recipe.name,
                "suggestion": found.suggestion,
                "max_stable_lr": found.max_stable_lr,
                "steepest": found.steepest,
                "default": options.lr,
                "diverged": found.diverged,
                "lrs": found.lrs,
                "losses": found.losses,
                "smoothed": found.smoothed,
                "plot": None if parsed.out is None else str(parsed.out),
            }
        )
        return 0
    rows = [
        ("suggestion: a tenth of the next", found.suggestion),
        ("least smoothed loss", found.max_stable_lr),
        ("steepest fall of the smoothed loss", found.steepest),
        (f"default of {recipe.name}", options.lr),
    ]
    print_table(("", "learning rate"), [(what, f"{value:.3g}") for what, value in rows])
    how = "the loss diverged" if found.diverged else f"the loss had not diverged at {parsed.max_lr:g}"
    print(f"\n{len(found.lrs)} steps from {parsed.min_lr:g} up; {how}")
    if parsed.out is not None:
        print(f"plot: {parsed.out}")
    return 0


def take_auto_lr(parsed: argparse.Namespace) -> bool:
    """Whether `--lr auto` was given; the word is taken out of `parsed`, for the options hold a number."""
    if getattr(parsed, "option_lr", None) != AUTO:
        return False
    delattr(parsed, "option_lr")
    return True


def with_found_lr(recipe: "Recipe", options: Any, config: "RunConfig", *, show_progress: bool) -> Any:
    """`options` with the learning rate that the range test suggests."""
    from quoin.runs.lr_range import find_lr

    found = float(f"{find_lr(recipe, options, config, show_progress=show_progress).suggestion:.3g}")
    if show_progress:
        print(f"{recipe.name}: --lr auto found {found:g}", file=sys.stderr)
    return replace(options, lr=found)


def _check_out(out: Path | None) -> None:
    """Where to write, looked at before the work and not after it."""
    if out is None:
        return
    if out.suffix.lower() not in PICTURES:
        raise UserError(
            f"--out expects a name ending in .svg, .png or .html, got {format_value(out.name)}: change its ending"
        )
    # os.path, not Path: a name too long to be a file's is then no folder
    if not os.path.isdir(out.parent) or os.path.isdir(out):
        reason = "it is a folder" if os.path.isdir(out) else "no such folder"
        raise UserError(f"{format_value(str(out))} could not be written ({reason}): choose another place with --out")
