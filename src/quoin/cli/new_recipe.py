"""`quoin new`: a recipe file to start from, written to be changed."""

import argparse
import keyword
from collections.abc import Sequence
from pathlib import Path

from quoin.cli.arguments import run_later
from quoin.cli.flags import Parser
from quoin.cli.progress import check_target
from quoin.errors import UserError, format_value

__all__ = ["add_new", "new"]

_HEADING = """\
# A recipe to change, copied from Quoin's `{origin}` by `quoin new`. Train it with: quoin train {file}
#   Options   each field is a flag; option(DEFAULT, "help") makes another, default(VALUE) changes one of a base class
#   model     the untrained model: put your own nn.Module here
#   build     data, model, loss and optimizer, put together as a task
#   TARGET    what a run on the default data should reach; None for nothing
#   MONITOR   the metric of every epoch by which the best weights are kept; None for the last weights
# NOTES, KEYWORDS and SUBJECT only list it; they may go. Modules beside this file can be imported from it.
"""


def add_new(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin new`."""
    parser.description = (
        "Write a recipe file to start your own from.\n\n"
        "The file is complete: it trains as it is, on built-in data, with a model and options of its own. Change it, "
        "train it by its\n"
        "path; its runs, reports and predictions are like those of Quoin's recipes."
    )
    parser.epilog = """\
examples:
  quoin new my_recipe.py                 a small network for tables, with comments
  quoin new my_gpt.py --from transformer-lm
  quoin train my_recipe.py --width 64
  quoin predict runs/my-recipe-1 new.csv --code my_recipe.py"""
    parser.add_argument("file", type=Path, metavar="FILE", help="the file to write, such as my_recipe.py")
    parser.add_flag("--from", "copy this recipe, as `quoin list` shows, instead of the small one", "RECIPE")
    parser.add_switch("--force", "overwrite an existing file")
    parser.set_defaults(run=run_later("new_recipe.new"))


def new(parsed: argparse.Namespace) -> int:
    path: Path = parsed.file
    if path.suffix != ".py" or not path.stem.isidentifier() or keyword.iskeyword(path.stem):
        raise UserError(
            f"expected the name of a Python module, such as my_recipe.py, got {format_value(path.name)}: letters, "
            "digits and underscores, then .py"
        )
    check_target(None, path, parsed.force)
    content = _source(getattr(parsed, "from"), path)
    from quoin.train.durable import replace_file

    replace_file(path, content.encode())
    print(f"{path} is written. Change it, then: quoin train {path}")
    return 0


def _source(reference: str | None, path: Path) -> str:
    """The content of the new file."""
    if reference is None:
        from quoin.runs.catalog import template

        return template().replace("THIS_FILE.py", path.name)
    from quoin.runs.catalog import find_recipe

    recipe = find_recipe(reference)
    if recipe.code is not None:
        raise UserError(
            f"--from expects the name of a recipe, got the file {format_value(reference)}: copy it yourself"
        )
    assert recipe.module.__file__ is not None, "what was imported from a package lies in a file"
    source = Path(recipe.module.__file__).read_text(encoding="utf-8")
    return _HEADING.format(origin=recipe.name, file=path.name) + source
