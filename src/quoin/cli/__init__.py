"""The command line: `quoin ...`. Parses before it imports torch; a user error is one line and exit code 2."""

import contextlib
import errno
import io
import os
import sys
from collections.abc import Sequence
from contextlib import nullcontext

from quoin.callbacks import listen_with
from quoin.cli.commands import parse
from quoin.cli.output import only_json
from quoin.cli.progress import CommandListener
from quoin.errors import UserError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give back its exit code: 0 success, 1 a miss or failure, 2 a mistake, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # a file name that is not text, or a terminal without Greek, is no reason to fall
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _run(words)
        sys.stdout.flush()  # here, where what goes wrong with the output can still be told
        return code
    except UserError as mistake:
        _say(" ".join(str(mistake).split()))
        return mistake.exit_code
    except KeyboardInterrupt:
        _say("stopped")
        return 130
    except BrokenPipeError:  # as in `quoin map | head`
        _discard_output()
        return 0
    except (
        OSError
    ) as error:  # a full disk can meet any write, that of a table into a file too; all else is a fault of ours
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        if not full and error.errno not in (errno.EBADF, errno.EIO):
            raise
        _discard_output()
        told = "the disk is full" if full else "the output cannot be written"
        _say(f"{told} ({error.strerror}): {'free some space' if full else 'give it another place'}, then run it again")
        return UserError.exit_code
    except MemoryError:
        _say("this does not fit in memory: give less at once")
        return UserError.exit_code


def _run(words: list[str]) -> int:
    try:
        parsed = parse(words)
        as_json = getattr(parsed, "json", False)
        with listen_with(CommandListener(show_progress=not as_json)), only_json() if as_json else nullcontext():
            return parsed.run(parsed)
    except SystemExit as ended:  # argparse's way to end --help and --version
        return int(ended.code or 0)


def _open_streams() -> None:
    """A stream that was closed, as by `>&-`, leads nowhere; unless its number is taken, the next file that is opened
    would get it."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 (they last as long as the process)
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


def _say(line: str) -> None:
    """One line on standard error, of at most 300 characters; its end, which says what to do, is kept."""
    line = f"quoin: {line}"
    with contextlib.suppress(OSError):  # nobody hears it
        print(line if len(line) <= 300 else f"{line[:180]} ... {line[-110:]}", file=sys.stderr)


def _discard_output() -> None:
    """Send what is still buffered nowhere: Python would try to write it once more at its end, and fail aloud."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
