"""The pages for users, README and docs, and the fenced blocks on them."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]


class Block(NamedTuple):
    """One fenced block: its page, its language, what is inside."""

    page: str
    language: str
    text: str

    @property
    def first(self) -> str:
        return self.text.partition("\n")[0]


def read(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks(page: str) -> list[Block]:
    """The blocks of a page, in its order."""
    found = re.findall(r"^```([^\n`]*)\n(.*?)^```$", read(page), flags=re.MULTILINE | re.DOTALL)
    return [Block(page, language, text) for language, text in found]


def is_example(block: Block) -> bool:
    """Whether it shows what is typed and what is printed."""
    return block.language == "console" or (block.language == "python" and block.text.startswith(">>> "))
