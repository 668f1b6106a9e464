"""What is done to the text of an SVG once it is plotted on light paper: it learns to be read on dark paper too, and to
stand beside others in one page.

Its colours stay in it as matplotlib wrote them, so that a program without style sheets shows it as it is. A style sheet
inside it says, for each of its colours, which one replaces it where the reader's system asks for dark: so does a file
opened by itself, an <img> and an element of a page. Every rule is a function of the colour alone: the style sheets of
several plots in one page agree.
"""

import hashlib
import re

from quoin.plot.palette import CELL_TEXT, TURN_OVER, turned_over

__all__ = ["PICTURE", "adapt"]

CLASS = "quoin-plot"
PICTURE = "quoin:picture"  # the address of images that are no amounts: photographs and digits, the same on any paper
_COLOR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})\b")
_ID = re.compile(r'(\bid="|href="#|url\(#)([^")]+)')
_LINK = re.compile(rf'<a\b[^>]*href="{PICTURE}"[^>]*>\s*<image\b(.*?)</a>', re.DOTALL)
_GLOBAL_STYLE = re.compile(r'\s*<style type="text/css">\*\{([^}]*)\}</style>')


def adapt(element: str) -> str:
    """The `<svg>` element, for light and dark paper, under ids of its own."""
    element = _LINK.sub(r'<image class="picture"\1', element)
    element = _GLOBAL_STYLE.sub(rf'<style type="text/css">.{CLASS} *{{\1}}</style>', element)
    element = element.replace("<svg", f'<svg class="{CLASS}"', 1)
    element = _with_own_ids(element)
    opening, rest = element.split(">", 1)
    return f"{opening}>\n <style>{_dark_rules(element)}</style>{rest}"


def _with_own_ids(element: str) -> str:
    """Ids behind a mark of what is plotted: in one page, the same id is the same thing."""
    mark = hashlib.sha256(element.encode()).hexdigest()[:8]
    return _ID.sub(rf"\1q{mark}-\2", element)


def _dark_rules(element: str) -> str:
    rules = [f".{CLASS}{{fill:{turned_over('#000000')}}}"]  # matplotlib writes no colour where it is black
    rules += [
        f'.{CLASS} [style*="{kind}: {color}"]{{{kind}:{CELL_TEXT.get(color) or turned_over(color)}!important}}'
        for kind, color in sorted(set(_COLOR.findall(element)))
    ]
    if re.search(r'<image(?! class="picture")', element):
        rules.append(f".{CLASS} image:not(.picture){{filter:{TURN_OVER}}}")
    return f"svg.{CLASS}:root{{color-scheme:light dark}}@media (prefers-color-scheme: dark){{{''.join(rules)}}}"
