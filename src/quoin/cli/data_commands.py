"""Which words the commands take that manage data. Nothing heavy is imported until one runs."""

from collections.abc import Sequence

from quoin.cli.arguments import add_json, run_later
from quoin.cli.flags import Parser

__all__ = ["add_fetch"]


def add_fetch(parser: Parser, words: Sequence[str]) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="data sets to fetch; without, they are listed")
    parser.description = (
        "Fetch a well-known data set into the cache, for --data NAME; without a name, list them.\n\n"
        "This is the only command that opens a connection. A download that breaks off goes on where it stopped; files "
        "are\nkept only if their SHA-256 is the one that is pinned. Needs pip install 'quoin[fetch]'."
    )
    parser.epilog = """\
examples:
  quoin fetch                    what there is, how large, under which licence
  quoin fetch mnist
  quoin train lenet --data mnist
  quoin fetch cifar10 --from https://my.mirror/cifar"""
    parser.flags.append("--from")
    parser.add_argument(
        "--from", dest="url", metavar="URL", help="folder of a mirror that has the files by the same names"
    )
    parser.add_switch("--force", "fetch it again, even if it is there")
    add_json(parser)
    parser.set_defaults(run=run_later("fetching.fetch"))
