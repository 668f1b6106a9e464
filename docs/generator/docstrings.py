"""A docstring as page text: paragraphs, arguments, equations, examples, ids of the notes.

Ours are paragraphs parted by empty lines. `Args:` opens a list, `>>>` an example, an indented paragraph is an equation
or a table, and the last line may be `Notes: Z3.1, Z3.2.`"""

import html
import inspect
import re

from generator.text import Resolve, code, prose

__all__ = ["docstring_page", "notes_ids", "summary"]

_ID = r"[A-Z][\w.\-]*\w"
_NOTES = re.compile(rf"\bNotes:\s+({_ID}(?:,\s+{_ID})*)\.?\s*\Z")


def summary(docstring: str) -> str:
    """The first paragraph, in one line, without examples and ids."""
    first = _NOTES.sub("", inspect.cleandoc(docstring)).split("\n\n")[0]
    return " ".join(re.sub(r"(?m)^>>> (?:.|\n)*", "", first).split())


def notes_ids(docstring: str) -> tuple[str, ...]:
    """The ids that close it."""
    found = _NOTES.search(docstring.strip())
    return tuple(re.split(r",\s+", found[1])) if found else ()


def docstring_page(docstring: str, resolve: Resolve, note: Resolve) -> str:
    """The docstring as Markdown with HTML paragraphs; `resolve` links code in backticks, `note` an id of the notes."""
    text = _NOTES.sub("", inspect.cleandoc(docstring)).rstrip()
    blocks = [_block(block, resolve) for block in _blocks(text)]
    ids = notes_ids(docstring)
    if ids:
        blocks.append(f'<p class="notes">Notes: {", ".join(code(id, note(id)) for id in ids)}</p>')
    return "\n\n".join(block for block in blocks if block)


def _blocks(text: str) -> list[str]:
    """Paragraphs; lines that follow `Args:` after an empty line and are indented stay with it."""
    blocks: list[str] = []
    for block in re.split(r"\n\s*\n", text):
        if blocks and block.startswith("    ") and re.match(r"\w+:\n", blocks[-1]):
            blocks[-1] += "\n" + block
        else:
            blocks.append(block.strip("\n"))
    return [part for block in blocks for part in _before_example(block)]


def _before_example(block: str) -> list[str]:
    """An example may follow its sentence without an empty line."""
    at = re.search(r"(?m)^\s*>>> ", block)
    return [block] if at is None or at.start() == 0 else [block[: at.start()].rstrip("\n"), block[at.start() :]]


def _block(block: str, resolve: Resolve) -> str:
    if block.lstrip().startswith(">>> "):
        return f"```pycon\n{inspect.cleandoc(block)}\n```"
    section = re.match(r"(\w+):\n((?:[ ]{4}.*\n?)+)\Z", block)
    if section:
        return _section(section[1], inspect.cleandoc("\n" + section[2]), resolve)
    if all(line.startswith("  ") for line in block.splitlines()):
        return f"```text\n{inspect.cleandoc(chr(10) + block)}\n```"
    first, rest = _lead(block)
    if rest:
        return f"{_block(first, resolve)}\n\n```text\n{inspect.cleandoc(chr(10) + rest)}\n```"
    if re.match(r"[-*] ", block):
        items = re.split(r"(?m)^[-*] ", block)[1:]
        return "<ul>" + "".join(f"<li>{prose(item, resolve)}</li>" for item in items) + "</ul>"
    return f"<p>{prose(block, resolve)}</p>"


def _lead(block: str) -> tuple[str, str]:
    """A sentence and, where all lines after it are indented, the equation below it."""
    first, _, rest = block.partition("\n")
    lines = rest.splitlines()
    if lines and not re.match(r"[-*] ", first) and all(line.startswith("    ") for line in lines):
        return first, rest
    return block, ""


def _section(name: str, text: str, resolve: Resolve) -> str:
    """`Args:` and its kin: a definition list."""
    items = re.findall(r"(?m)^(\*{0,2}[\w.]+(?:, [\w.]+)*): ((?:.*(?:\n(?:[ ]+.*)?)?(?!^\S))*)", text)
    if not items:
        return f"<p>{html.escape(name)}: {prose(text, resolve)}</p>"
    rows = "".join(f"<dt><code>{html.escape(key)}</code></dt><dd>{prose(said, resolve)}</dd>" for key, said in items)
    title = {"Args": "Arguments"}.get(name, name)
    return f'<p class="section">{title}</p>\n\n<dl class="arguments">{rows}</dl>'
