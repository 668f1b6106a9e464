"""What a report says, as a reader sees it: metrics in words and not by the names of the code."""

import re

from quoin.display import FAMILIES, METRICS, SPLITS

__all__ = ["has_words", "own_name", "raw_names"]


def own_name(metric: str) -> str:
    split = next((each for each in SPLITS if metric.startswith(f"{each}_")), None)
    return metric if split is None else metric.removeprefix(f"{split}_")


def has_words(metric: str) -> bool:
    own = own_name(metric)
    return own in METRICS or own.startswith(("degree_", *(f"{family}_" for family in FAMILIES)))


def raw_names(page: str) -> list[str]:
    """The headings, cells and titles of plots in a report that hold a name with an underscore."""
    before = page[: page.index("<h2>Configuration</h2>")]  # options stand under their own names
    shown = re.findall(
        r"<h[12]>(.*?)</h[12]>|<th[^>]*>(.*?)</th>|<td[^>]*>(.*?)</td>|<svg.*?<title>(.*?)</title>", before
    )
    texts = [re.sub(r"<[^>]*>", "", text) for row in shown for text in row if text]
    assert texts, "a report that says nothing"
    return [text for text in texts if re.search(r"[a-z]_[a-z]", text)]
