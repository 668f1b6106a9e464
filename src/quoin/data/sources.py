"""Data by name: what `--data SOURCE` accepts, and where each name leads.

Imports no torch at its top: the command line checks a name, and lists them all, before it pays for torch.
"""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from quoin.data.memory import explain_out_of_memory
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.data.dataset import Dataset

__all__ = [
    "FETCHED_SOURCES",
    "LABELED_SOURCES",
    "PAIR_SOURCES",
    "SOURCES",
    "TEXT_SOURCES",
    "TokenizerName",
    "check_source_name",
    "load",
]

TokenizerName = Literal["char", "word", "byte", "bpe"]  # what a text can be cut into: see corpus.py

NUM_IMAGES = 6_000  # of glyphs and shapes, unless their source says how many
_COUNTED = ("glyphs", "shapes")
_COUNTS = (100, 10_000_000)

SOURCES = {
    "digits": "1,797 handwritten digits, 8 x 8 grey pixels, 10 classes",
    "iris": "150 flowers, 4 measurements, 3 classes",
    "wine": "178 wines, 13 measurements, 3 classes",
    "breast-cancer": "569 tumours, 30 measurements, 2 classes",
    "diabetes": "442 patients, 10 measurements, regression on the progression after a year",
    "linear": "generated: y = 2 x0 - 3.4 x1 + 4.2 + noise",
    "polynomial": "generated: a noisy cubic, with 20 monomials as features",
    "moons": "generated: two interleaved half circles, 2 classes",
    "circles": "generated: two concentric circles, 2 classes",
    "blobs": "generated: Gaussian blobs, 3 classes",
    "waves": "generated: noisy signals of 128 steps (sine, square, sawtooth, triangle, chirp), 5 classes",
    "glyphs": f"generated: {NUM_IMAGES:,} letters and digits in many fonts, 28 x 28 grey pixels, 47 classes",
    "glyphs:NUMBER": "generated: as many such letters and digits",
    "shapes": f"generated: {NUM_IMAGES:,} coloured figures on dark ground, 32 x 32 pixels, 8 classes",
    "shapes:NUMBER": "generated: as many such figures",
    "csv:PATH": "a table with a header line; --target names its target column, --ignore columns to leave out",
    "tsv:PATH": "the same, its cells separated by tabs",
    "parquet:PATH": "a table in Parquet; PATH of a table may be a file, a folder of files or a glob",
    "jsonl:PATH": "a table with a JSON object in each line",
    "npz:PATH": "NumPy arrays `features` and `targets`",
    "images:FOLDER": "pictures, a folder for each class; --image-size resizes them, train/ validation/ test/ are kept",
    "idx:FOLDER": "MNIST or Fashion-MNIST files, gzipped or not",
    "cifar10:FOLDER": "CIFAR-10, binary version",
    "signals:PATH": "signals: a table whose columns are the steps, or NumPy `features` (n, channels, length)",
}

_TABLES = ("csv", "tsv", "parquet", "jsonl")

FETCHED_SOURCES = {  # see fetched.py
    "mnist": "70,000 handwritten digits, 28 x 28 grey pixels, 10 classes; after `quoin fetch mnist`",
    "fashion-mnist": "70,000 clothes, 28 x 28 grey pixels, 10 classes; after `quoin fetch fashion-mnist`",
    "cifar10": "60,000 photographs, 32 x 32 colour pixels, 10 classes; after `quoin fetch cifar10`",
}

TEXT_SOURCES = {  # for language models: see corpus.py
    "topics": "text: Python's own help topics, without repeated paragraphs",
    "tiny-shakespeare": "text: 40,000 lines of Shakespeare; after `quoin fetch tiny-shakespeare`",
    "text:PATH": "text: a file in UTF-8, gzipped or not",
    "tokens:PATH": "text: a file of `quoin tokenize`, which may be larger than memory",
}

PAIR_SOURCES = {  # for translation: see pairs.py
    "dates": "pairs, generated: dates as people write them, and as year-month-day",
    "numbers": "pairs, generated: numbers up to six digits, and their English words",
    "tsv:PATH": "pairs: a source, a tab and its translation in each line, in UTF-8, gzipped or not",
}

LABELED_SOURCES = {  # for classifiers of texts, which take tsv:PATH too: see walk_directions.py and labeled_texts.py
    "directions": "labelled texts, generated: walks of a Markov chain, forwards and backwards",
}


def check_source_name(source: str) -> None:
    """Raise a UserError unless `source` is a name of SOURCES or its kin for texts, pairs and labelled texts, or a file
    form with a path.

    >>> check_source_name("digits")
    >>> check_source_name("digit")
    Traceback (most recent call last):
    quoin.errors.UserError: expected a data source (`quoin list` shows all), got 'digit': did you mean 'digits'?
    """
    form, colon, path = source.partition(":")
    names = SOURCES | FETCHED_SOURCES | TEXT_SOURCES | PAIR_SOURCES | LABELED_SOURCES
    if not colon and source in names:
        return
    forms = {name.partition(":")[0]: name for name in names if ":" in name}
    if form in _COUNTED and colon:
        _image_count(source)
        return
    if form in forms:
        if path:
            return
        raise UserError(f"expected a path after {form!r}, got {format_value(source)}: write {forms[form]}")
    if colon:
        hint = did_you_mean(form, forms if form not in names else [form])
    elif source.endswith((".csv", ".tsv", ".parquet", ".jsonl", ".npz")):
        hint = f"to read a file, write {source.rpartition('.')[2]}:PATH"
    elif source.endswith((".txt", ".md", ".txt.gz")):
        hint = "to read a file, write text:PATH"
    elif os.path.isdir(os.path.expanduser(source)):
        hint = f"to read a folder of pictures, write {format_value(f'images:{source}', 200)}"
    else:
        hint = did_you_mean(source, names)
    raise UserError(f"expected a data source (`quoin list` shows all), got {format_value(source)}: {hint}")


def _image_count(source: str) -> int | None:
    """How many images `glyphs:NUMBER` asks for; None where it says nothing."""
    form, colon, number = source.partition(":")
    if not colon:
        return None
    digits = number.replace("_", "").replace(",", "")  # as in 20_000
    low, high = _COUNTS
    if digits.isascii() and digits.isdigit() and len(digits) < 10 and low <= int(digits) <= high:
        return int(digits)
    raise UserError(
        f"expected a number of images from {low} to {high:,}, got {format_value(source)}: write e.g. {form}:20000"
    )


@explain_out_of_memory("the data do not fit in memory: give fewer rows or columns, or smaller images")
def load(
    source: str,
    *,
    target: str | Sequence[str] | None = None,
    ignore: Sequence[str] = (),
    missing: Literal["error", "mean"] = "error",
    seed: int = 0,
    image_size: int = 0,
    image_channels: int | None = None,
    skip_broken: bool = False,
) -> "Dataset":
    """The data set that `source` names, its targets in their natural form (see `as_classes` and `as_regression`).

    Args:
        target: The target column of a table, or several for regression; unless given, the one column called `target`,
            `label` or `y`.
        ignore: Columns of a table to leave out.
        missing: "error" refuses a table with missing cells; "mean" keeps them as NaN for `prepare` to fill in.
        seed: Decides what a generated source samples.
        image_size: Height and width to which images:FOLDER resizes its pictures; 0 for the size that all share.
        image_channels: 1 or 3, to which it converts them; unless given, 1 where all are grey.
        skip_broken: Whether it leaves out files that cannot be read.
    """
    check_source_name(source)
    form, _, path = source.partition(":")
    if source in TEXT_SOURCES or f"{form}:PATH" in TEXT_SOURCES:
        raise UserError(
            f"expected rows of features, but {format_value(source)} is a text: train a language model on it, as "
            "`quoin train ngram`"
        )
    is_table = form in _TABLES
    if source in PAIR_SOURCES or (f"{form}:PATH" in PAIR_SOURCES and not is_table):
        raise UserError(
            f"expected rows of features, but {format_value(source)} are pairs of sentences: `quoin train "
            "translate-dates` takes such"
        )
    if source in LABELED_SOURCES:
        raise UserError(
            f"expected rows of features, but {format_value(source)} are texts: `quoin train "
            "sequence-classification` takes such"
        )
    if not is_table and form != "signals":
        for flag, given in (("--target", target), ("--ignore", ignore), ("--missing", missing != "error")):
            if given:
                raise UserError(
                    f"{flag} is for tables (csv:PATH, tsv:PATH, parquet:PATH, jsonl:PATH), but the data are "
                    f"{format_value(source)}: leave it out"
                )
    if form != "images" and (image_size or image_channels is not None or skip_broken):
        flag = "--image-size" if image_size else "--skip-broken" if skip_broken else "--image-channels"
        raise UserError(f"{flag} is for images:FOLDER, but the data are {format_value(source)}: leave {flag} out")
    if image_channels not in (None, 1, 3):
        raise UserError(f"expected 1 or 3 channels, got {image_channels}: give --image-channels 1 or 3")
    match form:
        case "images":
            from quoin.data.files_images import load_images
            from quoin.data.image_cache import ImageSettings

            size = (image_size, image_size) if image_size else None
            return load_images(path, ImageSettings(size, image_channels), skip_broken=skip_broken)
        case "csv" | "tsv" | "parquet" | "jsonl":
            from quoin.data.tables import load_table

            return load_table(form, path, target, ignore, missing)
        case "npz":
            from quoin.data.files_npz import load_npz

            return load_npz(path)
        case "idx":
            from quoin.data.files_idx import load_idx

            return load_idx(path)
        case "cifar10" if path:
            from quoin.data.files_cifar import load_cifar10

            return load_cifar10(path)
        case "signals":
            from quoin.data.signals import load_signals

            return load_signals(path, target, ignore)
        case "linear" | "polynomial" | "moons" | "circles" | "blobs" | "waves":
            from quoin.data.generated import make_dataset

            return make_dataset(form, seed)
        case "glyphs" | "shapes":
            from dataclasses import replace

            from quoin.data.generated import make_dataset

            return replace(make_dataset(form, seed, _image_count(source)), name=source)
        case "mnist" | "fashion-mnist" | "cifar10":
            from quoin.data.fetched import load_fetched

            return load_fetched(form)
        case _:
            from quoin.data.embedded import load_embedded

            return load_embedded(form)
