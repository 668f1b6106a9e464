"""The command line: `quoin ...`. Parses before it imports torch; a user error is one line and exit code 2."""

import contextlib
import errno
import io
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import NoReturn

from quoin.callbacks import SilentListener, listen_with
from quoin.cli.commands import parse
from quoin.cli.output import only_json
from quoin.cli.progress import CommandListener
from quoin.errors import UserError
from quoin.runs.launch import end_process, is_first, launched, started_with_others

__all__ = ["main", "main_and_exit"]


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
        if _says(mistake):
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
    except RuntimeError as error:
        if not _lost_another(error):
            raise
        if not launched() and _says(UserError()):  # one that had something to say has said it
            _say("another process of this command is gone before a run had begun, and this one with it: start again")
        return 1


def main_and_exit() -> NoReturn:
    """Run the command of this process and end it."""
    end_process(main())


def _run(words: list[str]) -> int:
    try:
        parsed = parse(words)
        as_json = getattr(parsed, "json", False)
        listener = CommandListener(show_progress=not as_json) if is_first() else SilentListener()
        with _among_processes(), listen_with(listener), only_json() if as_json else nullcontext():
            return parsed.run(parsed)
    except SystemExit as ended:  # argparse's way to end --help and --version
        return int(ended.code or 0)


@contextlib.contextmanager
def _among_processes() -> Iterator[None]:
    """One of several processes that train together: only the first shows anything, and torch's own lines, of which each
    would write the same, are left to errors."""
    if not started_with_others():
        yield
        return
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    if is_first():
        yield
    else:
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    if "torch" in sys.modules:
        from quoin.train.processes import leave_processes

        leave_processes()


def _says(error: UserError) -> bool:
    """Whether this process tells of a mistake: of several, the one that meets it first; when one is gone, whoever
    started them."""
    if not started_with_others():
        return True
    if "torch" not in sys.modules:
        return is_first()
    from quoin.runs.processes import LostProcessError
    from quoin.train.processes import is_first_to_say

    is_lost = isinstance(error, LostProcessError)
    # A mistake that all meet was told by the first before it ended; that it is gone nobody has told.
    return not (is_lost and launched()) and is_first_to_say(unknown=is_lost)


def _lost_another(error: RuntimeError) -> bool:
    """Whether an error says that another of several processes has ended before this one."""
    if not started_with_others() or "torch" not in sys.modules:
        return False
    from quoin.train.processes import lost_process

    return lost_process(error)


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
