"""Data by name: what `--data SOURCE` accepts, and where each name leads.

Imports no torch at its top: the command line checks a name, and lists them all, before it pays for torch.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from quoin.data.memory import explain_out_of_memory
from quoin.errors import UserError, did_you_mean, format_value

if TYPE_CHECKING:
    from quoin.data.dataset import Dataset

__all__ = [
    "LABELED_SOURCES",
    "PAIR_SOURCES",
    "SEQUENCE_SOURCES",
    "SOURCES",
    "TEXT_SOURCES",
    "TokenizerName",
    "check_source_name",
    "load",
]

TokenizerName = Literal["char", "word", "byte", "bpe"]  # what a text can be cut into: see corpus.py

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
    "csv:PATH": "a table with a header line; --target names its target column, --ignore columns to leave out",
    "npz:PATH": "NumPy arrays `features` and `targets`",
    "idx:FOLDER": "MNIST or Fashion-MNIST files, gzipped or not",
    "cifar10:FOLDER": "CIFAR-10, binary version",
}

TEXT_SOURCES = {  # for language models: see corpus.py
    "topics": "text: Python's own help topics, without repeated paragraphs",
    "text:PATH": "text: a file in UTF-8, gzipped or not, or a folder of .txt files",
    "tokens:PATH": "text: a file of `quoin tokenize`, which may be larger than memory",
}

PAIR_SOURCES = {  # for translation: see pairs.py
    "dates": "pairs, generated: dates as people write them, and as year-month-day",
    "numbers": "pairs, generated: numbers up to six digits, and their English words",
    "tsv:PATH": "pairs: a source, a tab and its translation in each line, in UTF-8, gzipped or not",
}

LABELED_SOURCES = {  # for classifiers of texts, which take csv:PATH and tsv:PATH too: see labeled_files.py
    "directions": "labelled texts, generated: walks of a Markov chain, forwards and backwards",
    "jsonl:PATH": "labelled texts or pairs: a JSON object in each line, in UTF-8, gzipped or not",
    "texts:FOLDER": "labelled texts: a folder of .txt files for each class, or these in train, validation and test",
}

SEQUENCE_SOURCES = {  # for Markov models, which take csv:PATH, tsv:PATH and jsonl:PATH too: see sequences.py
    "hmm": "sequences, generated: symbols of a hidden Markov model of three states",
    "markov-chain": "sequences, generated: symbols of a random Markov chain",
    "sequences:PATH": "sequences: one in each line, its symbols separated by blanks or commas or as a JSON list",
}


def check_source_name(source: str) -> None:
    """Raise a UserError unless `source` is a name of SOURCES or its kin for texts, pairs, labelled texts and
    sequences, or a file form with a path.

    >>> check_source_name("digits")
    >>> check_source_name("digit")
    Traceback (most recent call last):
    quoin.errors.UserError: expected a data source (`quoin list` shows all), got 'digit': did you mean 'digits'?
    """
    form, colon, path = source.partition(":")
    names = SOURCES | TEXT_SOURCES | PAIR_SOURCES | LABELED_SOURCES | SEQUENCE_SOURCES
    if not colon and source in names:
        return
    forms = {name.partition(":")[0]: name for name in names if ":" in name}
    if form in forms:
        if path:
            return
        raise UserError(f"expected a path after {form!r}, got {format_value(source)}: write {forms[form]}")
    if colon:
        hint = did_you_mean(form, forms if form not in names else [form])
    elif source.endswith((".csv", ".npz")):
        hint = f"to read a file, write {source[-3:]}:PATH"
    elif source.endswith((".txt", ".md", ".txt.gz")):
        hint = "to read a file, write text:PATH"
    elif source in ("mnist", "fashion-mnist"):  # known by name, though their files must be brought along
        hint = "give the folder of its files as idx:FOLDER"
    else:
        hint = did_you_mean(source, names)
    raise UserError(f"expected a data source (`quoin list` shows all), got {format_value(source)}: {hint}")


@explain_out_of_memory("the data do not fit in memory: give fewer rows or columns, or smaller images")
def load(source: str, *, target: str | None = None, ignore: Sequence[str] = (), seed: int = 0) -> "Dataset":
    """The data set that `source` names, its targets in their natural form (see `as_classes` and `as_regression`).

    Args:
        target: The target column of a CSV; unless given, the one column called `target`, `label` or `y`.
        ignore: Columns of a CSV to leave out.
        seed: Decides what a generated source samples.
    """
    check_source_name(source)
    form, _, path = source.partition(":")
    if source in TEXT_SOURCES or f"{form}:PATH" in TEXT_SOURCES:
        raise UserError(
            f"expected rows of features, but {format_value(source)} is a text: train a language model on it, as "
            "`quoin train ngram`"
        )
    if source in PAIR_SOURCES or f"{form}:PATH" in PAIR_SOURCES:
        raise UserError(
            f"expected rows of features, but {format_value(source)} are pairs of sentences: `quoin train "
            "translate-dates` takes such"
        )
    if source in SEQUENCE_SOURCES or form == "sequences":
        raise UserError(
            f"expected rows of features, but {format_value(source)} are sequences of symbols: `quoin train hmm` takes "
            "such"
        )
    if source in LABELED_SOURCES or f"{form}:PATH" in LABELED_SOURCES or form == "texts":
        raise UserError(
            f"expected rows of features, but {format_value(source)} are texts: `quoin train "
            "sequence-classification` takes such"
        )
    if target is not None and form != "csv":
        raise UserError(
            f"a target column can be named for csv:PATH only, but the data are {format_value(source)}: leave "
            "--target out"
        )
    if ignore and form != "csv":
        raise UserError(
            f"columns can be left out of csv:PATH only, but the data are {format_value(source)}: leave --ignore out"
        )
    match form:
        case "csv":
            from quoin.data.files_csv import load_csv

            return load_csv(path, target, ignore)
        case "npz":
            from quoin.data.files_npz import load_npz

            return load_npz(path)
        case "idx":
            from quoin.data.files_idx import load_idx

            return load_idx(path)
        case "cifar10":
            from quoin.data.files_cifar import load_cifar10

            return load_cifar10(path)
        case "linear" | "polynomial" | "moons" | "circles" | "blobs":
            from quoin.data.generated import make_dataset

            return make_dataset(form, seed)
        case _:
            from quoin.data.embedded import load_embedded

            return load_embedded(form)
