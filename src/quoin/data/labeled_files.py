"""Texts with their classes from files: a column of texts and one of classes, or a folder of .txt files for each class.

The folder may hold `train`, `validation` and `test` folders, which then hold the folders of the classes.
"""

from collections.abc import Sequence
from pathlib import Path

from quoin.data.files import existing_folder, quoted
from quoin.data.pairs import Pairs
from quoin.data.text import text_pieces
from quoin.data.text_columns import FORMS, TextColumn, read_columns
from quoin.errors import UserError, format_value

__all__ = ["load_labeled_pairs", "read_texts"]

TEXT_COLUMN = TextColumn("text", "--text-column", ("text", "sentence", "review", "content"))
LABEL_COLUMN = TextColumn("class", "--target", ("label", "class", "target", "y", "sentiment"))
SPLITS = ("train", "validation", "test")


def load_labeled_pairs(
    source: str, *, text_column: TextColumn = TEXT_COLUMN, target: TextColumn = LABEL_COLUMN
) -> Pairs:
    """Texts as sources and the names of their classes as targets, of csv:PATH, tsv:PATH, jsonl:PATH or texts:FOLDER.

    Args:
        text_column: How the column of the texts is found in a file.
        target: The same for the classes.
    """
    form, _, path = source.partition(":")
    if form in FORMS and path:
        cells = read_columns(form, path, (text_column, target))
        return Pairs(source, *zip(*cells.rows), column_names=cells.names)  # pyright: ignore[reportArgumentType]
    if named := text_column.name or target.name:
        flag = text_column.flag if text_column.name else target.flag
        raise UserError(
            f"{flag} {format_value(named)} names a column of csv:PATH, tsv:PATH or jsonl:PATH, but the data are "
            f"{format_value(source)}: leave it out"
        )
    if form == "texts" and path:
        return _load_folder(source, path)
    raise UserError(
        f"expected texts with their classes, got the data source {format_value(source)}: give directions, csv:PATH, "
        "tsv:PATH, jsonl:PATH or texts:FOLDER"
    )


def read_texts(path: str | Path, text_column: str | None) -> tuple[list[str], list[str] | None]:
    """Texts to predict for, and their names where they have any: the .txt files of a folder, the texts of a .csv, .tsv
    or .jsonl file, or else the lines of a text.

    Args:
        text_column: What the column of the texts was called in training.
    """
    form, colon, source_path = str(path).partition(":")
    if not colon or form not in (*FORMS, "texts"):
        form, source_path = Path(path).suffix.lower().removeprefix("."), str(path)
    if form in FORMS:
        cells = read_columns(form, source_path, [TEXT_COLUMN._replace(preferred=text_column)])
        return [str(row[0]) for row in cells.rows], None
    if form == "texts" or Path(source_path).is_dir():
        folder = existing_folder(source_path)
        files = _text_files(folder, deep=True)
        return [_content(file) for file in files], [file.relative_to(folder).as_posix() for file in files]
    lines = "".join(text_pieces(source_path)).removesuffix("\n").split("\n")
    return [line.strip() for line in lines], None


def _load_folder(source: str, path: str) -> Pairs:
    folder = existing_folder(path)
    inside = _folders(folder)
    names = {each.name.lower() for each in inside}
    parts = {each.name.lower(): each for each in inside} if names and names <= set(SPLITS) else {"": folder}
    if "" not in parts and "train" not in parts:
        raise UserError(f"expected a folder train in {quoted(path)} beside {', '.join(sorted(parts))}: add it")
    sources, targets, splits = [], [], []
    for split in (name for name in ("", *SPLITS) if name in parts):
        classes = _folders(parts[split])
        if not classes:
            raise UserError(
                f"expected a folder for each class in {quoted(parts[split])}, with .txt files in it, but there is "
                "none: sort the texts into folders named like their classes"
            )
        for label in classes:
            for file in _text_files(label):
                sources.append(_content(file))
                targets.append(label.name)
                splits.append(split)
    return Pairs(source, tuple(sources), tuple(targets), splits=tuple(splits) if "" not in parts else None)


def _folders(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith("."))


def _text_files(folder: Path, *, deep: bool = False) -> Sequence[Path]:
    found = sorted(each for each in folder.glob("**/*.txt" if deep else "*.txt") if not each.name.startswith("."))
    if not found:
        raise UserError(f"expected .txt files in {quoted(folder)}, but there are none: save each text as one")
    return found


def _content(file: Path) -> str:
    content = "".join(text_pieces(file)).strip()
    if not content:
        raise UserError(f"expected a text in {quoted(file)}, but it is blank: fill it in or remove the file")
    return content
