"""`quoin import`: weights that another library trained, as a run folder."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser, any_number, whole_number
from quoin.cli.output import print_json
from quoin.cli.progress import Work

__all__ = ["add_import", "import_run"]


def add_import(parser: Parser, words: Sequence[str]) -> None:
    """The words of `quoin import`."""
    parser.description = (
        "Make a run folder of weights that another library trained: `quoin eval`, `generate`, `predict`, `inspect` "
        "and\n"
        "`quoin train --pretrained RUN` take it like any other.\n\n"
        "SOURCE is a folder of Hugging Face's, with config.json, safetensors and, of a language model, "
        "tokenizer.json:\n"
        "GPT-2, Llama, GPT-NeoX as `quoin export` writes it, ViT, ResNet. Or it is a .safetensors file with the names "
        "of\n"
        "torchvision: AlexNet, DenseNet, GoogLeNet, ResNet, ResNeXt, VGG, ViT. Pickles are never opened."
    )
    parser.epilog = """\
examples:
  quoin import gpt2/ -o runs/gpt2 && quoin generate runs/gpt2 --prompt "The cat"
  quoin train transformer-lm --pretrained runs/gpt2 --data text:book.txt
  quoin import resnet18.safetensors --class-names imagenet.txt -o runs/resnet18
  quoin import vit/ --data images:flowers       evaluated and inspected on these"""
    parser.add_argument(
        "source", type=Path, metavar="SOURCE", help="a folder of Hugging Face's, or a .safetensors file"
    )
    parser.flags += ["-o", "--out"]
    out = "the run folder to write (default: runs/RECIPE-N with the next free number)"
    parser.add_argument("-o", "--out", type=Path, metavar="FOLDER", help=out)
    parser.add_flag("--data", "the run's own data, to evaluate and inspect it on; unless given it has none", "STR")
    parser.add_flag("--class-names", "of image classifiers: a file with a line for each class", "FILE", type=Path)
    parser.add_flag(
        "--image-size",
        "of image classifiers: height and width of the images (default: that of the weights, else 224)",
        "INT",
        type=whole_number,
        default=0,
    )
    mean = "of image classifiers: normalize images by this mean of each channel, pixels being in [0, 1] (default: that "
    mean += "of the weights' family)"
    std = "the standard deviations that go with --image-mean"
    for name, words in (("--image-mean", mean), ("--image-std", std)):
        parser.flags.append(name)
        parser.add_argument(name, type=any_number, nargs="+", default=(), metavar="FLOAT", help=words)
    parser.add_switch("--force", "overwrite an existing run")
    add_json(parser)
    parser.set_defaults(run=run_later("import_command.import_run"))


def import_run(parsed: argparse.Namespace) -> int:
    from quoin.runs.import_weights import ImportRequest, import_weights

    request = ImportRequest(
        parsed.data or "", parsed.class_names, parsed.image_size, tuple(parsed.image_mean), tuple(parsed.image_std)
    )
    with Work("importing", show_progress=not parsed.json):
        found = import_weights(parsed.source, parsed.out, request=request, force=parsed.force)
    for remark in found.remarks:
        print(f"note: {remark}", file=sys.stderr)
    if parsed.json:
        print_json(
            {
                "run": str(found.path),
                "recipe": found.recipe,
                "family": found.family,
                "num_parameters": found.num_parameters,
                "notes": list(found.remarks),
            }
        )
    else:
        print(
            f"{found.path}: a run of {found.recipe}, {found.num_parameters:,} parameters read by the names of "
            f"{found.family}"
        )
    return 0
