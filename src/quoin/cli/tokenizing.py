"""`quoin tokenize`: a text in, a file of its tokens out, whole or not at all."""

import argparse
from pathlib import Path
from typing import get_args

from quoin.cli.output import print_json
from quoin.cli.progress import Work, check_target, unwritable
from quoin.data import TokenizerName
from quoin.data.files import existing_file
from quoin.errors import UserError, did_you_mean, format_value

__all__ = ["tokenize"]

SUFFIX = ".tokens"
SIZE = 2000
LEARNT = ("word", "bpe")  # vocabularies that can be of any size


def tokenize(parsed: argparse.Namespace) -> int:
    if parsed.tokenizer not in (names := get_args(TokenizerName)):
        raise UserError(f"--tokenizer is {format_value(parsed.tokenizer)}: {did_you_mean(parsed.tokenizer, names)}")
    if parsed.vocab_size is not None and parsed.tokenizer not in LEARNT:
        raise UserError(
            f"--vocab-size is for a vocabulary of words or bpe, but it is of {parsed.tokenizer}: leave --vocab-size out"
        )
    if parsed.vocab_size is not None and not 1 <= parsed.vocab_size <= 10**7:
        raise UserError(f"--vocab-size must be from 1 to 10000000, got {parsed.vocab_size}")
    named = parsed.text in ("topics", "tiny-shakespeare")
    source = parsed.text if named or parsed.text.startswith("text:") else f"text:{parsed.text}"
    path = None if named else existing_file(source.removeprefix("text:"))
    target = parsed.out or (path.with_name(path.name + SUFFIX) if path else Path(source + SUFFIX))
    check_target(path, target, parsed.force)
    from quoin.data import tokenize_file, tokenizer_fingerprint

    try:
        with Work("tokenizing", show_progress=not parsed.json) as work:
            found = tokenize_file(source, target, parsed.tokenizer, parsed.vocab_size or SIZE, on_progress=work.update)
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
                "tokenizer": parsed.tokenizer,
                "vocab_size": found.tokenizer.vocab_size,
                "tokenizer_fingerprint": tokenizer_fingerprint(found.tokenizer),
                "bytes": num_bytes,
                "seconds": work.seconds,
            }
        )
    else:
        kinds = f"{found.tokenizer.vocab_size:,} kinds ({parsed.tokenizer})"
        became = f"{found.num_characters:,} characters became {found.num_tokens:,} tokens of {kinds}"
        print(
            f"{target}: {became}, {num_bytes / 1e6:,.2f} MB, in {work.seconds:.1f} s; train on it with --data "
            f"tokens:{target}"
        )
    return 0
