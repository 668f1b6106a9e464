"""The command line: `quoin ...`. Parses before it imports torch; a mistake of yours is one line and exit code 2."""

import errno
import io
import os
import sys
from collections.abc import Sequence

from quoin.cli.commands import parse
from quoin.errors import Mistake

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give back its exit code: 0 success, 1 a miss or failure, 2 a mistake, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a file name that is not text, or a terminal without Greek, is no reason to fall
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()  # here, where what goes wrong with the output can still be told
        return code
    except Mistake as mistake:
        print(f"quoin: {' '.join(str(mistake).split())}", file=sys.stderr)
        return mistake.exit_code
    except KeyboardInterrupt:
        print("quoin: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # as in `quoin map | head`
        _discard_output()
        return 0
    except OSError as error:  # a full disk can meet any write, that of a table into a file too; all else is a fault of ours
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _discard_output()
        print(f"quoin: the disk is full ({error.strerror}): free some space, then run it again", file=sys.stderr)
        return Mistake.exit_code


def _run(words: list[str]) -> int:
    try:
        parsed = parse(words)
        return parsed.run(parsed)
    except SystemExit as ended:  # argparse's way to end --help and --version
        return int(ended.code or 0)


def _discard_output() -> None:
    """Send what is still buffered nowhere: Python would try to write it once more at its end, and fail aloud."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
