"""How objects show themselves: in one short line, and in a notebook as a table or a small picture. Imports no torch."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.display.listing import Listing
    from quoin.display.notebook import NotebookBar, in_notebook, tell
    from quoin.display.pictures import bar_chart, chain_graph, code_tree, line_chart
    from quoin.display.short import one_line, short, shown_fields
    from quoin.display.shown import shown
    from quoin.display.tables import Markup, fields_table, number_table, table, values_html
    from quoin.display.words import FAMILIES, METRICS, SPLITS, capitalized, format_number, metric_words, short_names

__all__ = [
    "FAMILIES",
    "METRICS",
    "SPLITS",
    "Listing",
    "Markup",
    "NotebookBar",
    "bar_chart",
    "capitalized",
    "chain_graph",
    "code_tree",
    "fields_table",
    "format_number",
    "in_notebook",
    "line_chart",
    "metric_words",
    "number_table",
    "one_line",
    "short",
    "short_names",
    "shown",
    "shown_fields",
    "table",
    "tell",
    "values_html",
]

export_lazily(__name__)
