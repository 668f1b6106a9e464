"""`quoin tokenize`: a text in, a file of its tokens out, whole or not at all."""

import argparse
from pathlib import Path
from typing import get_args

from quoin.cli.show import print_json
from quoin.cli.working import Work, check_target, unwritable
from quoin.data import VocabularyName
from quoin.data.files import existing_file
from quoin.errors import Mistake, nearest, shown

__all__ = ["tokenize"]

SUFFIX = ".tokens"
SIZE = 2000
LEARNT = ("words", "bpe")  # vocabularies that can be of any size


def tokenize(parsed: argparse.Namespace) -> int:
    if parsed.vocabulary not in (names := get_args(VocabularyName)):
        raise Mistake(f"--vocabulary is {shown(parsed.vocabulary)}: {nearest(parsed.vocabulary, names)}")
    if parsed.size is not None and parsed.vocabulary not in LEARNT:
        raise Mistake(f"--size is for a vocabulary of words or bpe, but it is of {parsed.vocabulary}: leave --size out")
    if parsed.size is not None and not 1 <= parsed.size <= 10**7:
        raise Mistake(f"--size must be from 1 to 10000000, got {parsed.size}")
    source = parsed.text if parsed.text == "topics" or parsed.text.startswith("text:") else f"text:{parsed.text}"
    path = None if source == "topics" else existing_file(source.removeprefix("text:"))
    target = parsed.out or (path.with_name(path.name + SUFFIX) if path else Path(source + SUFFIX))
    check_target(path, target, parsed.force)
    from quoin.data import tokenize_file, vocabulary_fingerprint

    try:
        with Work("tokenizing", visible=not parsed.json) as work:
            found = tokenize_file(source, target, parsed.vocabulary, parsed.size or SIZE, tell=work.tell)
    except OSError as error:
        raise unwritable(target, error) from None
    num_bytes = target.stat().st_size
    if parsed.json:
        print_json(
            {
                "file": str(target),
                "source": source,
                "characters": found.num_characters,
                "tokens": found.num_tokens,
                "vocabulary": parsed.vocabulary,
                "vocabulary_size": found.vocabulary.size,
                "vocabulary_fingerprint": vocabulary_fingerprint(found.vocabulary),
                "bytes": num_bytes,
                "seconds": work.seconds,
            }
        )
    else:
        kinds = f"{found.vocabulary.size:,} kinds ({parsed.vocabulary})"
        became = f"{found.num_characters:,} characters became {found.num_tokens:,} tokens of {kinds}"
        print(f"{target}: {became}, {num_bytes / 1e6:,.2f} MB, in {work.seconds:.1f} s; train on it with --data tokens:{target}")
    return 0
