"""Which commands there are and which words each takes. Nothing heavy is imported until a command runs."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from quoin.cli.arguments import add_jobs, add_json, add_label, add_processes, add_run, add_step, run_later
from quoin.cli.bench_command import add_bench
from quoin.cli.caching import add_cache
from quoin.cli.comparing import add_compare
from quoin.cli.compressing import add_compress, add_decompress
from quoin.cli.data_commands import add_fetch
from quoin.cli.export_command import add_export
from quoin.cli.flags import Parser, add_options, whole_number
from quoin.cli.generating import add_generate
from quoin.cli.import_command import add_import
from quoin.cli.lab_command import add_lab
from quoin.cli.lr_range import add_lr, auto_lr
from quoin.cli.new_recipe import add_new
from quoin.cli.plan_command import add_plan
from quoin.cli.runs_command import add_runs
from quoin.cli.sweep_command import add_sweep
from quoin.errors import UserError, did_you_mean, format_value
from quoin.runs.launch import started_with_others

__all__ = ["COMMANDS", "parse"]

TOGETHER = ("train", "resume")  # what several processes do together
_EXAMPLES = """\
examples:
  quoin train mlp                     train the default recipe on built-in data
  quoin train mlp --data csv:my.csv --target label
  quoin resume runs/mlp-1             after Ctrl-C or a kill: the result is bitwise identical
  quoin map perplexity                find a function, a theorem, a recipe by a word
  quoin check Z3.9                    does the code do what the notes say?
  quoin COMMAND --help                more on one command"""


def parse(words: Sequence[str]) -> argparse.Namespace:
    """What the words ask for, with the function that does it under `run`."""
    name = words[0] if words else "--help"
    if name.startswith("-"):
        return _top().parse(words)
    if name not in COMMANDS:
        raise UserError(f"no command {format_value(name)} (`quoin --help` shows all): {did_you_mean(name, COMMANDS)}")
    what, add_words = COMMANDS[name]
    parser = Parser(f"quoin {name}", what[0].upper() + what[1:] + ".")
    add_words(parser, words[1:])
    if name not in TOGETHER and started_with_others():
        raise UserError(f"quoin {name} runs in one process: call it without torchrun")
    parsed = parser.parse(words[1:])
    parsed.command_line = list(words)
    return parsed


def _top() -> Parser:
    import quoin

    lines = "\n".join(f"  {name:<12}{what}" for name, (what, _) in COMMANDS.items())
    top = Parser("quoin", f"Deep learning, block by block.\n\ncommands:\n{lines}", _EXAMPLES)
    top.usage = "quoin COMMAND ..."
    top.add_argument("--version", action="version", version=f"quoin {quoin.__version__}")
    top.set_defaults(run=lambda parsed: top.print_help() or 0)
    return top


def _list(parser: Parser, words: Sequence[str]) -> None:
    parser.add_argument(
        "words", nargs="*", metavar="WORD", help="only recipes with this word in name, summary, keywords or data"
    )
    parser.epilog = """\
examples:
  quoin list                     all recipes, by subject; then those of installed packages
  quoin list translation         recipes on translation
  quoin list gpt"""
    add_json(parser)
    parser.set_defaults(run=run_later("tools.list_recipes"))


def _train(parser: Parser, words: Sequence[str]) -> None:
    from quoin.cli.config_file import ABOUT_FILES, read_given_config
    from quoin.runs.catalog import DEFAULT
    from quoin.runs.run_config import RunConfig

    names = [word for word in words[:1] if not word.startswith("-")]
    given = read_given_config(words)
    reference = names[0] if names else given.recipe or DEFAULT
    recipe = given.recipe_beside(reference)
    parser.add_argument(
        "recipe",
        nargs="?",
        default=reference,
        help=f"name of a recipe, as `quoin list` shows, or a file (default: {DEFAULT})",
    )
    target = f"Quality target on the default data: {recipe.target}." if recipe.target else "It has no quality target."
    parser.description = f"{recipe.summary}\n\n{target}".lstrip()
    parser.epilog = (
        "`quoin train RECIPE --help` shows the options of another recipe; `quoin list` shows all recipes; `quoin new\n"
        "my_recipe.py` writes a file to start your own from, and `quoin train my_recipe.py` trains it.\n\n"
        + ABOUT_FILES
    )
    parser.add_flag(
        "--runs", "where run folders are created (default: runs)", "FOLDER", type=Path, default=Path("runs")
    )
    add_label(parser)
    parser.add_flag("--config", "take options from a TOML file, or those of a run", "FILE|RUN")
    parser.add_switch("--print-config", "print every option as a TOML file for --config, and train nothing")
    parser.add_flag(
        "--seeds", "train with INT seeds, each in a subfolder; report mean and std", "INT", type=_count, default=0
    )
    parser.add_flag(
        "--folds", "k-fold cross-validation: train k times, each in a subfolder", "INT", type=_count, default=0
    )
    add_jobs(parser)
    parser.add_switch("--require-target", "exit with status 1 if the quality target is missed")
    add_json(parser)
    add_options(parser, recipe.options, f"options of {recipe.name}", auto=auto_lr(recipe))
    add_options(parser, RunConfig, "runtime options")
    given.apply(parser, recipe, auto_lr(recipe))
    parser.set_defaults(run=run_later("training.train"), first_recipe=reference)


def _count(text: str) -> int:
    number = whole_number(text)
    if number != 0 and not 2 <= number <= 10_000:  # 0 undoes what a config file says
        raise argparse.ArgumentTypeError(f"expects 0 or a whole number from 2 to 10000, got {format_value(text)}")
    return number


def _resume(parser: Parser, words: Sequence[str]) -> None:
    add_run(parser, "the folder of a run, of a multirun over seeds or folds, or of a sweep")
    add_step(parser)
    add_processes(parser)
    parser.add_flag("--data", "where the run's data are now, if they moved: the same data, named as in training", "STR")
    add_jobs(parser)
    parser.add_switch("--require-target", "exit with status 1 if the quality target is missed")
    add_json(parser)
    parser.set_defaults(run=run_later("training.resume"))


def _eval(parser: Parser, words: Sequence[str]) -> None:
    add_run(parser)
    add_step(parser)
    parser.add_flag("--data", "evaluate on all examples of this data set instead of the run's own splits", "STR")
    parser.add_flag("--target", "the target column, where --data is a file with columns", "STR")
    add_json(parser)
    parser.set_defaults(run=run_later("trained.evaluate"))


def _predict(parser: Parser, words: Sequence[str]) -> None:
    add_run(parser)
    read = (
        "a file like the training data (.csv, .tsv, .parquet, .jsonl, .npz), a picture or a folder of pictures, or the "
        "lines of a text: sentences, texts to classify, sequences"
    )
    parser.add_argument("input", type=Path, metavar="FILE", help=read)
    write = "where to write: .csv or .npz, text for translations (default: standard output)"
    parser.add_flag("--out", write, "FILE", type=Path)
    add_step(parser)
    parser.set_defaults(run=run_later("trained.predict"))


def _inspect(parser: Parser, words: Sequence[str]) -> None:
    add_run(parser)
    parser.description = (
        "Look inside a trained model: a table of its layers (shapes, parameters, dead units) and a page of plots.\n\n"
        "For images it shows the learned kernels, the feature maps of a test image, saliency maps and the "
        "top-activating patches\n"
        "of a layer; for models with attention, the attention maps of every head, with an interactive page of the "
        "weights, for language\n"
        "models as they read --text; for any data, the dead units and the norms of activations and gradients by "
        "layer."
    )
    parser.epilog = """\
examples:
  quoin inspect runs/lenet-1                          the table, and runs/lenet-1/inspect.html
  quoin inspect runs/lenet-1 --row 3 8                the feature maps of two test images
  quoin inspect runs/attention-digits-1 --row 3       the attention maps of test example 3
  quoin inspect runs/transformer-lm-1 --text "The cat sat on the"
  quoin inspect runs/lenet-1 --layer features.3       one layer in detail; its name is in the table
  quoin inspect runs/lenet-1 --format png --out plots"""
    parser.add_flag("--layer", "show this layer: its feature maps, kernels and top-activating patches", "NAME")
    parser.add_flag("--text", "of a language model: what it reads (default: the beginning of its test text)", "TEXT")
    parser.add_rows("--row", "show these test examples, counted from 1 (default: the first of each class)")
    parser.add_flag(
        "--out",
        "where to write: a .html page, or with --format svg or png a folder (default: in RUN)",
        "PATH",
        type=Path,
    )
    parser.add_flag(
        "--format",
        "html for one page, svg or png for one file per plot (default: html)",
        "html|svg|png",
        default="html",
    )
    add_step(parser)
    add_json(parser)
    parser.set_defaults(run=run_later("inspecting.inspect"))


def _tokenize(parser: Parser, words: Sequence[str]) -> None:
    parser.description = (
        "Tokenize a text into a file of token ids, on which language models train with --data tokens:FILE.\n\n"
        "The text may be larger than memory: it is read some megabytes at a time, and so are its tokens in "
        "training. The file holds the\n"
        "vocabulary, checksums, and where the training, validation and test splits begin. Vocabularies of words and "
        "byte pairs are learned\n"
        "from the training split alone. The file is written whole or not at all."
    )
    parser.epilog = """\
examples:
  quoin tokenize book.txt -o book.tokens                     a token for each character
  quoin tokenize book.txt --tokenizer bpe --vocab-size 4000       byte pairs; needs pip install 'quoin[text]'
  quoin train lstm-lm --data tokens:book.tokens"""
    parser.add_argument("text", metavar="TEXT", help="a text file in UTF-8, gzipped or not; or topics")
    parser.flags += ["-o", "--out"]
    parser.add_argument("-o", "--out", type=Path, metavar="OUT", help="where to write (default: TEXT.tokens)")
    parser.add_flag("--tokenizer", "kind of tokenizer (default: char)", "char|word|byte|bpe", default="char")
    parser.add_flag(
        "--vocab-size",
        "maximum vocabulary size of a word or byte-pair tokenizer (default: 2000)",
        "INT",
        type=whole_number,
    )
    parser.add_switch("--force", "overwrite an existing file")
    add_json(parser)
    parser.set_defaults(run=run_later("tokenizing.tokenize"))


def _words(parser: Parser, help: str, metavar: str = "ID|AREA") -> None:
    parser.add_argument("words", nargs="*", metavar=metavar, help=help)


def _check(parser: Parser, words: Sequence[str]) -> None:
    _words(parser, "ids such as Z3.9, or areas by number or name; all claims if none is given")
    parser.add_flag("--seed", "random seed of the cases (default: 0)", "INT", type=whole_number, default=0)
    parser.add_flag("--num-workers", "processes (default: as many as cores)", "INT", type=whole_number)
    add_json(parser)
    parser.set_defaults(run=run_later("notes_commands.check"))


def _figure(parser: Parser, words: Sequence[str]) -> None:
    _words(parser, "ids such as D1F1, or areas; all figures if none is given")
    parser.add_flag("--out", "the folder to write to (default: figures)", "FOLDER", type=Path, default=Path("figures"))
    parser.add_flag("--format", "svg, png or html (default: svg)", "svg|png|html", default="svg")
    parser.add_switch("--gallery", "also write a page of all of them, index.html, into the folder")
    add_json(parser)
    parser.set_defaults(run=run_later("notes_commands.figure"))


def _map(parser: Parser, words: Sequence[str]) -> None:
    _words(parser, "any word to search for, or ids and area numbers; everything if none is given", "WORD|ID|AREA")
    parser.description = (
        "Find a layer, a loss, a theorem, a recipe: by any word of names, titles, keywords and docstrings.\n\n"
        "Every item of the lecture notes has an id, such as Z3.9 or D4.1-10: Z, D and M name the notes, ZE, DE and "
        "ME their errata.\n"
        "With an id, or an area's number, the map shows what implements the item, which claim checks it and which "
        "figure plots it."
    )
    parser.epilog = """\
examples:
  quoin map huffman               everything on Huffman codes, with lines to paste
  quoin map weight decay
  quoin map Z3.9                  one item of the notes
  quoin map 11                    area 11: attention"""
    parser.add_switch("--all", "all matches of a word, not only the best")
    parser.add_switch("--missing", "only items that have no implementation yet")
    parser.add_switch("--packages", "what each package contains instead, as a Markdown table")
    add_json(parser)
    parser.set_defaults(run=run_later("notes_commands.map_notes"))


def _doctor(parser: Parser, words: Sequence[str]) -> None:
    add_json(parser)
    parser.set_defaults(run=run_later("tools.doctor"))


COMMANDS: dict[str, tuple[str, Callable[[Parser, Sequence[str]], None]]] = {
    "list": ("list the recipes by subject, with their quality targets", _list),
    "fetch": ("fetch a well-known data set into the cache: MNIST, Fashion-MNIST, CIFAR-10, ...", add_fetch),
    "new": ("write a recipe file to start your own from", add_new),
    "train": ("train a recipe or a recipe file of your own, once or over several seeds or folds", _train),
    "lr": ("find a learning rate for a recipe by a range test, with its plot", add_lr),
    "plan": ("plan a run before it is started: will it fit in memory, and how long will it take", add_plan),
    "sweep": ("search the options of a recipe by trials: grid, random, TPE", add_sweep),
    "resume": ("resume an interrupted or killed run", _resume),
    "runs": ("list runs with their state, results and notes, and remove them", add_runs),
    "eval": ("evaluate a trained run, on its own data or on another data set", _eval),
    "predict": ("predict for the examples of a file or for pictures, or translate the lines of a text", _predict),
    "generate": ("sample from a trained model: text, images, points", add_generate),
    "compare": ("compare runs: mean and spread over seeds, tests, learning curves; CSV, Markdown, LaTeX", add_compare),
    "inspect": ("look inside a trained model: layers, kernels, feature maps, saliency", _inspect),
    "export": ("take a trained model elsewhere: ONNX, torch.export, Hugging Face, safetensors", add_export),
    "import": (
        "make a run folder of weights that another library trained: GPT-2, Llama, ViT, torchvision's",
        add_import,
    ),
    "compress": ("compress a file losslessly by context mixing, or with your own model", add_compress),
    "decompress": ("restore a compressed file", add_decompress),
    "tokenize": ("tokenize a text into a file of token ids for language models", _tokenize),
    "check": ("check the claims of the lecture notes", _check),
    "figure": ("plot the figures of the lecture notes", _figure),
    "map": ("search everything by a word: layers, losses, theorems, figures, recipes", _map),
    "lab": ("play with the notes and with your runs in the browser", add_lab),
    "bench": ("benchmark Quoin against other libraries: time, memory, quality", add_bench),
    "cache": ("list what is in the cache, decoded images and fetched data, and remove it", add_cache),
    "doctor": ("check the environment: is everything installed that Quoin needs", _doctor),
}
