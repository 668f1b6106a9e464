"""Which commands there are and which words each takes. Nothing heavy is imported until a command runs."""

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path

from quoin.cli.flags import Parser, add_options, any_number, whole_number
from quoin.errors import Mistake, nearest, shown

__all__ = ["COMMANDS", "parse"]

_EXAMPLES = """\
examples:
  quoin train mlp                     train the default recipe on embedded data
  quoin train mlp --data csv:my.csv --target label
  quoin resume runs/mlp-1             after Ctrl-C or a kill: goes on to the same bits
  quoin check Z3.9                    does the code do what the notes say?
  quoin COMMAND --help                more on one command"""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """What the words ask for, with the function that does it under `run`."""
    name = words[0] if words else "--help"
    if name.startswith("-"):
        return _top().parse(words)
    if name not in COMMANDS:
        raise Mistake(f"no command {shown(name)} (`quoin --help` shows all): {nearest(name, COMMANDS)}")
    what, add_words = COMMANDS[name]
    parser = Parser(f"quoin {name}", what[0].upper() + what[1:] + ".")
    add_words(parser, words[1:])
    return parser.parse(words[1:])


def _top() -> Parser:
    import quoin

    lines = "\n".join(f"  {name:<12}{what}" for name, (what, _) in COMMANDS.items())
    top = Parser("quoin", f"Deep learning, block by block.\n\ncommands:\n{lines}", _EXAMPLES)
    top.usage = "quoin COMMAND ..."
    top.add_argument("--version", action="version", version=f"quoin {quoin.__version__}")
    top.set_defaults(run=lambda parsed: top.print_help() or 0)
    return top


def _later(place: str) -> Callable[[argparse.Namespace], int]:
    """The function `module.name` of this room, imported when it is called."""

    def run(parsed: argparse.Namespace) -> int:
        module, _, name = place.partition(".")
        return getattr(importlib.import_module(f"quoin.cli.{module}"), name)(parsed)

    return run


def _json(parser: Parser) -> None:
    parser.add_switch("--json", "print JSON for a machine to read")


def _list(parser: Parser, words: Sequence[str]) -> None:
    _json(parser)
    parser.set_defaults(run=_later("tools.list_recipes"))


def _train(parser: Parser, words: Sequence[str]) -> None:
    from quoin.runs.catalog import DEFAULT, find_recipe, recipe_names
    from quoin.runs.run_config import RunConfig

    names = [word for word in words[:1] if not word.startswith("-")]
    parser.add_argument("recipe", nargs="?", default=DEFAULT, help=f"one of {', '.join(recipe_names())} (default: {DEFAULT})")
    recipe = find_recipe(names[0] if names else DEFAULT)
    parser.description = f"{recipe.summary}\n\nTarget on the default data: {recipe.target}."
    parser.epilog = "`quoin train RECIPE --help` shows the options of another recipe; `quoin list` shows all recipes."
    parser.add_flag("--runs", "where run folders are made (default: runs)", "FOLDER", type=Path, default=Path("runs"))
    parser.add_flag("--seeds", "train with so many seeds, each in a subfolder; mean and spread", "K", type=_count, default=0)
    parser.add_flag("--folds", "k-fold cross-validation: train k times, each in a subfolder", "K", type=_count, default=0)
    parser.add_switch("--require-target", "exit with 1 if the target is missed")
    _json(parser)
    add_options(parser, recipe.options, f"options of {recipe.name}")
    add_options(parser, RunConfig, "how to run")
    parser.set_defaults(run=_later("training.train"), first_recipe=recipe.name)


def _count(text: str) -> int:
    if not 2 <= (number := whole_number(text)) <= 10_000:
        raise argparse.ArgumentTypeError(f"expects a whole number from 2 to 10000, got {shown(text)}")
    return number


def _step(parser: Parser) -> None:
    parser.add_flag("--step", "the checkpoint of this step instead of the newest", "N", type=whole_number)


def _run(parser: Parser, help: str = "the run's folder, such as runs/mlp-1") -> None:
    parser.add_argument("folder", type=Path, metavar="RUN", help=help)


def _resume(parser: Parser, words: Sequence[str]) -> None:
    _run(parser, "the folder of a run or of a study over seeds or folds")
    _step(parser)
    parser.add_switch("--require-target", "exit with 1 if the target is missed")
    _json(parser)
    parser.set_defaults(run=_later("training.resume"))


def _eval(parser: Parser, words: Sequence[str]) -> None:
    _run(parser)
    _step(parser)
    parser.add_flag("--data", "evaluate on all rows of these data instead of the run's own parts", "SOURCE")
    parser.add_flag("--target", "the target column, where --data is a CSV file", "TEXT")
    _json(parser)
    parser.set_defaults(run=_later("trained.evaluate"))


def _predict(parser: Parser, words: Sequence[str]) -> None:
    _run(parser)
    read = "a .csv or .npz file with the features the run was trained on; for a translation, a text with a sentence in each line"
    parser.add_argument("input", type=Path, metavar="FILE", help=read)
    parser.add_flag("--out", "where to write: .csv or .npz, text for translations (default: standard output)", "FILE", type=Path)
    _step(parser)
    parser.set_defaults(run=_later("trained.predict"))


def _generate(parser: Parser, words: Sequence[str]) -> None:
    _run(parser, "the folder of a language model's run, such as runs/lstm-lm-1, or of a model that draws, such as runs/vae-1")
    parser.description = (
        "Draw from a trained model.\n\n"
        "A language model goes on writing, token by token, until there are as many tokens as asked for or you press Ctrl-C. Each token\n"
        "is drawn from the law that the model gives to it after those before. A temperature below 1 keeps to the likelier ones, --top-k\n"
        "and --nucleus draw from the likeliest only, and --beam looks for the likeliest text instead of drawing one.\n\n"
        "A model of images draws a sheet of new ones, a model of points in the plane a cloud: as a picture, or as numbers into a .npy\n"
        "file. --strip shows how images come out of noise, --traverse what each coordinate of a latent does."
    )
    parser.epilog = """\
examples:
  quoin generate runs/lstm-lm-1 --prompt "The assert statement" --temperature 0.7
  quoin generate runs/ngram-1 --beam 8 --max-tokens 60
  quoin generate runs/vae-1 -n 64 --seed 0 --out samples.png
  quoin generate runs/diffusion-digits-1 --class 7 --guidance 3 --steps 20
  quoin generate runs/diffusion-digits-1 --strip -n 6 --out strip.svg"""
    parser.add_flag("--seed", "what is drawn from (default: 0)", "N", type=whole_number)
    _step(parser)
    _json(parser)
    texts = parser.add_argument_group("of a language model")
    parser.add_flag("--prompt", "the text to go on from (default: as after the end of a line)", "TEXT", group=texts)
    parser.add_flag("--max-tokens", "how many tokens to write at most (default: 300)", "N", type=whole_number, group=texts)
    parser.add_flag("--temperature", "below 1 the likelier tokens gain, above 1 the others (default: 1)", "N", type=any_number, group=texts)
    parser.add_flag("--top-k", "draw from the K likeliest tokens only", "K", type=whole_number, group=texts)
    parser.add_flag("--nucleus", "draw from the fewest likeliest tokens that have this chance together", "P", type=any_number, group=texts)
    parser.add_flag("--beam", "the likeliest text that a beam of this width finds, not a drawn one", "N", type=whole_number, group=texts)
    images = parser.add_argument_group("of a model that draws images or points")
    parser.add_flag("-n", "how many to draw (default: 64 images, 8 with --strip; 1000 points)", "N", type=whole_number, group=images)
    parser.add_flag("--out", "a .png, .svg or .html picture, or .npy (default: samples.png in RUN)", "FILE", type=Path, group=images)
    parser.add_flag("--class", "draw this class only, where the model knows classes", "NAME", group=images)
    parser.add_flag("--steps", "the steps from noise to image, where the model takes some", "N", type=whole_number, group=images)
    parser.add_flag("--guidance", "how strongly the class is asked for; 1 is as it was learnt", "N", type=any_number, group=images)
    parser.add_flag("--sampler", "how to go from noise to image: ddpm, ddim, ...", "NAME", group=images)
    parser.add_switch("--strip", "show the images as they come out of noise", group=images)
    parser.add_switch("--traverse", "show what each coordinate of a latent does", group=images)
    parser.set_defaults(run=_later("generating.generate"))


def _compare(parser: Parser, words: Sequence[str]) -> None:
    parser.add_argument("folders", type=Path, nargs="+", metavar="RUN", help="two or more run folders")
    parser.add_flag("--out", "where to write the page with the curves (default: compare.html)", "FILE", type=Path)
    _json(parser)
    parser.set_defaults(run=_later("trained.compare"))


def _inspect(parser: Parser, words: Sequence[str]) -> None:
    _run(parser)
    parser.description = (
        "Look inside a trained run: a table of its layers (shapes, parameters, silent units) and a page of pictures.\n\n"
        "Of images it shows the learnt kernels, the feature maps of a test image, the pixels on which decisions hang, and the\n"
        "patches that excite a layer most; of a model that attends, where every head looks, with a page beside to point at for\n"
        "the numbers; of any data, the silent units and the size of signals and gradients by layer."
    )
    parser.epilog = """\
examples:
  quoin inspect runs/lenet-1                          the table, and runs/lenet-1/inspect.html
  quoin inspect runs/lenet-1 --row 3 8                how the layers see two test images
  quoin inspect runs/attention-digits-1 --row 3       where the heads look in test row 3
  quoin inspect runs/lenet-1 --layer features.3       one layer more closely; the table has the names
  quoin inspect runs/lenet-1 --format png --out pictures"""
    parser.add_flag("--layer", "show this layer: its maps, its kernels, its strongest patches", "NAME")
    parser.add_rows("--row", "show these test rows, counted from 1 (default: the first of each class)")
    parser.add_flag("--out", "where to write: a .html page, or with --format svg or png a folder (default: in RUN)", "PLACE", type=Path)
    parser.add_flag("--format", "html for one page, svg or png for one file a picture (default: html)", "html|svg|png", default="html")
    _step(parser)
    _json(parser)
    parser.set_defaults(run=_later("inspecting.inspect"))


def _compress(parser: Parser, words: Sequence[str]) -> None:
    _whole_file(parser, "the file to make smaller", "FILE.quoin", "compressing.compress")
    parser.description = (
        "Make a file smaller, so that `quoin decompress` gives it back byte for byte on any machine.\n\n"
        "Models of the last 0 to 6 bytes and of words each guess the next bit from what followed the same context before; a mix\n"
        "that learns whom to trust joins the guesses, and a coder spends -log2 p bits on a bit that had probability p. What no\n"
        "model makes smaller is stored as it is. The archive carries checksums, and is written whole or not at all."
    )
    parser.epilog = """\
examples:
  quoin compress notes.txt                    writes notes.txt.quoin; notes.txt stays
  quoin decompress notes.txt.quoin -o same.txt
  quoin compress notes.txt -o n.quoin --force --json
  quoin compress notes.txt --model runs/lstm-lm-1   by a language model of your own; needed again to decompress
  quoin compress digits.npy --model runs/pixelcnn-1   by a model of images, for those of its size and grey levels"""
    _coder(parser)


def _decompress(parser: Parser, words: Sequence[str]) -> None:
    _whole_file(parser, "an archive of `quoin compress`", "the archive's name without .quoin", "compressing.decompress")
    parser.description = (
        "Give back the file that `quoin compress` made smaller.\n\n"
        "The archive's checksum is compared before anything is decoded, and that of the content before anything is written:\n"
        "what is damaged or cut is refused, and no file is touched."
    )
    parser.epilog = """\
examples:
  quoin decompress notes.txt.quoin            writes notes.txt, if there is none
  quoin decompress notes.txt.quoin -o same.txt
  quoin decompress notes.txt.quoin --model runs/lstm-lm-1"""
    _coder(parser)


def _coder(parser: Parser) -> None:
    parser.add_flag("--model", "code by this run's model, on one thread: a language model any bytes, pixelcnn images", "RUN", type=Path)


def _whole_file(parser: Parser, help: str, default: str, run: str) -> None:
    parser.add_argument("file", type=Path, metavar="FILE", help=help)
    parser.flags += ["-o", "--out"]
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help=f"where to write (default: {default})")
    parser.add_switch("--force", "write over a file that is there")
    _json(parser)
    parser.set_defaults(run=_later(run))


def _tokenize(parser: Parser, words: Sequence[str]) -> None:
    parser.description = (
        "Turn a text into a file of its tokens, which language models train on with --data tokens:FILE.\n\n"
        "The text may be larger than memory: it is read some megabytes at a time, and so are its tokens in training. The file holds the\n"
        "vocabulary, checksums, and where the parts to learn from, to validate and to test on begin. Words and byte pairs are learnt from\n"
        "the training part alone. The file is written whole or not at all."
    )
    parser.epilog = """\
examples:
  quoin tokenize book.txt -o book.tokens                     a token for each character
  quoin tokenize book.txt --vocabulary bpe --size 4000       byte pairs; needs pip install 'quoin[text]'
  quoin train lstm-lm --data tokens:book.tokens"""
    parser.add_argument("text", metavar="TEXT", help="a text file in UTF-8, gzipped or not; or topics")
    parser.flags += ["-o", "--out"]
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help="where to write (default: TEXT.tokens)")
    parser.add_flag("--vocabulary", "what a token is (default: characters)", "characters|words|bytes|bpe", default="characters")
    parser.add_flag("--size", "the most tokens of a vocabulary of words or bpe (default: 2000)", "N", type=whole_number)
    parser.add_switch("--force", "write over a file that is there")
    _json(parser)
    parser.set_defaults(run=_later("tokenizing.tokenize"))


def _words(parser: Parser, help: str) -> None:
    parser.add_argument("words", nargs="*", metavar="ID|AREA", help=help)


def _check(parser: Parser, words: Sequence[str]) -> None:
    _words(parser, "ids such as Z3.9, or areas by number or name; all claims if none is given")
    parser.add_flag("--seed", "what the random cases are drawn from (default: 0)", "N", type=whole_number, default=0)
    parser.add_flag("--workers", "processes (default: as many as cores)", "N", type=whole_number)
    _json(parser)
    parser.set_defaults(run=_later("notebook.check"))


def _figure(parser: Parser, words: Sequence[str]) -> None:
    _words(parser, "ids such as D1F1, or areas; all figures if none is given")
    parser.add_flag("--out", "the folder to write to (default: figures)", "FOLDER", type=Path, default=Path("figures"))
    parser.add_flag("--format", "svg, png or html (default: svg)", "svg|png|html", default="svg")
    _json(parser)
    parser.set_defaults(run=_later("notebook.figure"))


def _map(parser: Parser, words: Sequence[str]) -> None:
    _words(parser, "ids, or areas by number or name; everything if none is given")
    parser.add_switch("--missing", "only what has no home yet")
    parser.add_switch("--packages", "the packages and their duties instead, as a Markdown table")
    _json(parser)
    parser.set_defaults(run=_later("notebook.map_notes"))


def _bench(parser: Parser, words: Sequence[str]) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="rows to run, or `attention` for all of its rows; all if none is given")
    parser.add_flag("--rounds", "how often each side runs (default: as the row says)", "N", type=whole_number, default=0)
    _json(parser)
    parser.set_defaults(run=_later("tools.bench"))


def _doctor(parser: Parser, words: Sequence[str]) -> None:
    _json(parser)
    parser.set_defaults(run=_later("tools.doctor"))


COMMANDS: dict[str, tuple[str, Callable[[Parser, Sequence[str]], None]]] = {
    "list": ("the recipes, with their targets", _list),
    "train": ("train a recipe, once or over several seeds or folds", _train),
    "resume": ("go on with an interrupted or killed run", _resume),
    "eval": ("evaluate a trained run, on its own data or on others", _eval),
    "predict": ("predict for the rows of a CSV or NPZ file, translate the lines of a text", _predict),
    "generate": ("draw from a trained model: text, images, points", _generate),
    "compare": ("runs side by side: options that differ, curves, results", _compare),
    "inspect": ("look inside a trained run: layers, kernels, feature maps, saliency", _inspect),
    "compress": ("make a file smaller with a mix of context models", _compress),
    "decompress": ("give back a file that compress made smaller", _decompress),
    "tokenize": ("turn a text into a file of tokens for language models", _tokenize),
    "check": ("check the notes' claims", _check),
    "figure": ("draw the notes' figures", _figure),
    "map": ("where each item of the notes lives, what checks it and draws it", _map),
    "bench": ("Quoin beside its peers: time, memory, quality", _bench),
    "doctor": ("is everything here that Quoin needs?", _doctor),
}
