"""`quoin export`: a trained model in a form that other programs open, compared with the run it comes from."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from quoin.cli.arguments import add_json, add_run, add_step, code_access, run_later
from quoin.cli.flags import Parser
from quoin.cli.output import format_size, print_json, print_table
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.runs.export.written import Written

__all__ = ["add_export", "export"]

FORMS = ("onnx", "torch", "huggingface", "safetensors")


def add_export(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin export`."""
    add_run(parser)
    parser.description = (
        "Write a trained model in a form that other programs open, then open it with them and compare its answers "
        "with the run's.\n\n"
        "onnx and torch hold graphs with free batch size and length, the scales and the threshold inside: raw rows, "
        "pictures or tokens go\n"
        "in, named answers come out; quoin.json beside them has the names of classes and features and the vocabulary. "
        "Language models come\n"
        "with and without cache, samplers as one step, each with a script for the loop. huggingface is a folder for "
        "transformers or diffusers,\n"
        "safetensors the weights alone. The largest difference is printed; one above the tolerance exits with 1, and "
        "the files stay."
    )
    parser.epilog = """\
examples:
  quoin export runs/mlp-1 --to onnx                       writes mlp-1-onnx/; needs pip install 'quoin[export]'
  quoin export runs/transformer-lm-1 --to onnx -o lm && python lm/generate.py "The cat"
  quoin export runs/lenet-1 --to torch --force
  quoin export runs/transformer-lm-1 --to huggingface
  quoin export runs/mlp-1 --to safetensors --json"""
    parser.add_flag("--to", "the form", "|".join(FORMS))
    parser.flags += ["-o", "--out"]
    out = "the folder to write (default: the run's name and the form, such as mlp-1-onnx, in the working directory)"
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help=out)
    parser.add_switch("--force", "overwrite an existing export")
    add_step(parser)
    add_json(parser)
    parser.set_defaults(run=run_later("export_command.export"))


def export(parsed: argparse.Namespace) -> int:
    if parsed.to not in FORMS:
        told = "expected one of " + ", ".join(FORMS) if parsed.to is None else did_you_mean(parsed.to, FORMS)
        raise UserError(f"--to {'is missing' if parsed.to is None else format_value(parsed.to)}: {told}")
    from quoin.runs import Run
    from quoin.runs.export.export import export_run
    from quoin.runs.kinds import MODULE

    run = Run.open(parsed.folder, step=parsed.step, code=code_access(parsed))
    if run.kind == MODULE:  # it has no code that a command could run
        raise UserError(
            f"{run.path} is a run of a module of your own, which is in your Python code: there, call "
            f"quoin.open_run({str(run.path)!r}, model=...).export({parsed.to!r})"
        )
    written = export_run(run, parsed.to, parsed.out, force=parsed.force)
    for note in written.notes:
        print(f"note: {note}", file=sys.stderr)
    (_print_json if parsed.json else _print_tables)(written)
    return 0 if written.is_equal else 1


def _print_json(written: "Written") -> None:
    print_json(
        {
            "files": [str(path) for path in written.files],
            "equal": written.is_equal,
            "differences": [
                {"what": each.what, "difference": each.value, "tolerance": each.tolerance, "met": each.is_met}
                for each in written.differences
            ],
            "notes": list(written.notes),
        }
    )


def _print_tables(written: "Written") -> None:
    print_table(("file", "size"), [(str(path), format_size(path.stat().st_size)) for path in written.files])
    print()
    rows = [(each.what, f"{each.value:.2g}", f"{each.tolerance:.0e}", each.is_met) for each in written.differences]
    print_table(("compared with the run", "largest difference", "tolerance", ""), rows)
    if not written.is_equal:
        print("\nthe answers differ by more than the tolerance; the files are kept, to be looked into", file=sys.stderr)
