"""A page of sections that needs nothing outside itself: a table of contents, panels side by side where the window is
wide, plots that a click enlarges, on light or dark paper.

What the sections hold is report.py's matter.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable

from quoin.plot.palette import css_variables

__all__ = ["page"]

STYLE = """
*, ::before, ::after { box-sizing: border-box }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  padding: 1.6rem 1.2rem 4rem; max-width: 120rem }
h1 { font-size: 1.6rem; margin: 0 0 0.2rem; overflow-wrap: anywhere } h2 { font-size: 1.15rem; margin: 0 0 0.5rem }
a { color: var(--accent) } p.lead, figcaption { color: var(--faint) } p.lead { margin: 0 0 1.2rem }
p, ul, figcaption, pre { max-width: 46rem }
main { display: grid; grid-template-columns: minmax(0, 1fr); gap: 2rem 2.2rem; align-items: start }
section { min-width: 0; scroll-margin-top: 1rem }
nav.contents { margin-bottom: 1.6rem } nav.contents ul { list-style: none; margin: 0; padding: 0 }
nav.contents a { display: block; padding: 0.1rem 0; text-decoration: none; overflow-wrap: anywhere }
nav.contents a:hover { text-decoration: underline }
figure { margin: 0 } figure .plot svg { display: block; max-width: 100%; height: auto }
.plot { position: relative; width: fit-content; max-width: 100% }
button.enlarge { position: absolute; top: 0; right: 0; min-width: 2rem; height: 2rem; padding: 0 0.4rem; font: inherit;
  line-height: 1; color: var(--faint); background: var(--paper); border: 1px solid var(--edge); border-radius: 0.3rem;
  cursor: zoom-in; opacity: 0 }
.plot:hover button.enlarge, button.enlarge:focus-visible { opacity: 1 }
.plot.enlargeable > :is(svg, img) { cursor: zoom-in }
@media (hover: none) { button.enlarge { opacity: 0.85 } }
dialog.large { width: 98vw; max-width: 98vw; height: 96vh; max-height: 96vh; padding: 0.8rem; border: 0;
  border-radius: 0.4rem; color: var(--ink); background: var(--paper) }
dialog.large::backdrop { background: rgb(0 0 0 / 60%) }
dialog.large[open] { display: flex; flex-direction: column; gap: 0.4rem }
dialog.large p { margin: 0; display: flex; justify-content: space-between; gap: 1rem; align-items: center;
  max-width: none }
dialog.large button { font: inherit; color: inherit; background: var(--paper); border: 1px solid var(--edge);
  border-radius: 0.3rem; padding: 0.2rem 0.8rem; cursor: pointer }
dialog.large > :is(svg, img) { flex: 1; min-height: 0; width: 100%; height: 100%; object-fit: contain;
  cursor: zoom-out }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px }
.table { overflow-x: auto; max-width: 100% } table { border-collapse: collapse; margin: 0.2rem 0 0.6rem }
td, th { padding: 0.2rem 1.2rem 0.2rem 0; text-align: left; vertical-align: top; border-bottom: 1px solid var(--grid) }
td { white-space: nowrap } td:first-child, details td { overflow-wrap: anywhere; white-space: normal; min-width: 8rem }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: var(--raised); padding: 0.6rem 0.8rem; margin: 0 }
.met { color: var(--hand); font-weight: 600 } .missed { color: var(--change); font-weight: 600 }
details { margin: 0.3rem 0 } summary { cursor: pointer }
p.note { white-space: pre-wrap; border-left: 3px solid var(--grid); padding-left: 0.8rem; margin: 0 0 0.6rem }
.tag { background: var(--raised); border-radius: 0.3rem; padding: 0.1rem 0.45rem; font-size: 0.9em }
@media (min-width: 1100px) {
  body.has-contents { display: grid; grid-template-columns: 13rem minmax(0, 1fr); column-gap: 2.4rem;
    padding-left: 1.8rem; padding-right: 1.8rem }
  header { grid-column: 1 / -1 }
  nav.contents { position: sticky; top: 1rem; align-self: start; max-height: calc(100vh - 2rem); overflow-y: auto }
  main { grid-template-columns: repeat(2, minmax(0, 1fr)) } section.whole { grid-column: 1 / -1 }
}
@media (min-width: 1100px) and (max-height: 500px) { nav.contents { position: static; max-height: none } }
@media (max-width: 1099px) {
  nav.contents li { display: inline-block; margin-right: 1rem } nav.contents h2 { display: none }
}
@media (max-width: 32rem) {
  body { padding: 1rem 0.7rem 3rem } td, th { padding-right: 0.7rem } td:first-child { min-width: 5rem }
}
@media print { nav.contents, button.enlarge { display: none } }
"""

# A click or the button, which Tab reaches, puts the plot into a dialog that covers the window; Escape, which a dialog
# heeds by itself, another click or Close puts it back.
_SCRIPT = """
{
  const dialog = document.createElement("dialog"), bar = document.createElement("p");
  const name = document.createElement("strong"), close = document.createElement("button");
  dialog.className = "large"; close.type = "button"; close.textContent = "Close"; bar.append(name, close);
  dialog.append(bar); document.body.append(dialog);
  let place = null;
  dialog.addEventListener("close", () => {
    place.prepend(dialog.querySelector("svg, img")); place.querySelector("button").focus();
  });
  dialog.addEventListener("click", event => { if (!event.target.closest("a")) dialog.close(); });
  for (const plot of document.querySelectorAll("figure .plot")) {
    const title = plot.dataset.title ?? plot.closest("section")?.querySelector("h2")?.textContent ?? "";
    const button = document.createElement("button");
    button.type = "button"; button.className = "enlarge"; button.textContent = "\\u2922";
    button.setAttribute("aria-label", "Enlarge: " + title); button.title = "Enlarge";
    const open = event => {
      if (event.target.closest("a")) return;
      place = plot; name.textContent = title; dialog.append(plot.querySelector("svg, img")); dialog.showModal();
    };
    plot.classList.add("enlargeable"); plot.append(button); plot.addEventListener("click", open);
  }
}
"""
# A page loads nothing but pictures from beside it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src 'self' file: data:"
_HEADING = re.compile(r"<h2>(.*?)</h2>", re.DOTALL)


def page(title: str, lead: str, sections: Iterable[str], *, style: str = "") -> str:
    """A whole HTML page; sections come from report.py, and `style` adds to the style of all pages. A section that
    begins with a heading is in the contents; what has none belongs to the one before it."""
    heading = html.escape(title)
    parts = _with_headings([each for each in sections if each])
    names = Counter[str]()
    ids = [_id(_HEADING.search(part), names) for part in parts]
    listed = [(where, found[1]) for where, part in zip(ids, parts) if (found := _HEADING.search(part))]
    body = "\n".join(f"<section{_attributes(where, part)}>\n{part}\n</section>" for where, part in zip(ids, parts))
    contents = "".join(f'<li><a href="#{where}">{text}</a></li>' for where, text in listed)
    nav = f'<nav class="contents" aria-label="Contents"><h2>Contents</h2><ul>{contents}</ul></nav>\n'
    has_contents = len(listed) > 2
    kind = ' class="has-contents"' if has_contents else ""
    script = f"<script>{_SCRIPT}</script>\n" if "<figure" in body else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" '
        f'content="light dark"><meta http-equiv="Content-Security-Policy" content="{_POLICY}"><title>{heading}</title>'
        f"<style>{css_variables()}{STYLE}{style}</style></head>\n<body{kind}>\n"
        f'<header><h1>{heading}</h1>\n<p class="lead">{html.escape(lead)}</p></header>\n{nav * has_contents}'
        f"<main>\n{body}\n</main>\n{script}</body>\n</html>\n"
    )


def _with_headings(sections: list[str]) -> list[str]:
    """Sections joined to those before them where they have no heading of their own; those before all by themselves."""
    parts: list[str] = []
    for section in sections:
        if parts and not _HEADING.match(section) and _HEADING.search(parts[-1]) and "<figure" not in parts[-1]:
            parts[-1] += f"\n{section}"
        else:
            parts.append(section)
    return parts


def _id(heading: re.Match[str] | None, taken: Counter[str]) -> str:
    """A name for a link to the section, its own on the page; none without a heading."""
    if heading is None:
        return ""
    slug = re.sub(r"[^a-z0-9]+", "-", html.unescape(heading[1]).lower()).strip("-") or "section"
    taken[slug] += 1
    return slug if taken[slug] == 1 else f"{slug}-{taken[slug]}"


def _attributes(where: str, part: str) -> str:
    """The section's name, and that it stands alone in its row where it may be broader than half a window."""
    columns = len(re.findall(r"<th\b", part))
    plots = part.count("<figure")
    narrow = plots == 1 or (plots == 0 and _HEADING.match(part) and "<details" not in part and columns <= 4)
    return (f' id="{where}"' if where else "") + ("" if narrow else ' class="whole"')
