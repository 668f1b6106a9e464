"""The command line: `quoin ...`. Parses before it imports torch; a mistake of yours is one line and exit code 2."""

import os
import sys
from collections.abc import Sequence

from quoin.cli.commands import parse
from quoin.errors import Mistake

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give back its exit code: 0 success, 1 a miss or failure, 2 a mistake, 130 interrupted."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        parsed = parse(words)
        return parsed.run(parsed)
    except Mistake as mistake:
        print(f"quoin: {' '.join(str(mistake).split())}", file=sys.stderr)
        return mistake.exit_code
    except KeyboardInterrupt:
        print("quoin: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # as in `quoin map | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
