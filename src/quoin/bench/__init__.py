"""Quoin beside its peers: speed, memory and quality in one table."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.bench.attention_findings import Finding, attention_findings, attention_tables
    from quoin.bench.measured import Measured, Side, summary
    from quoin.bench.row import Contestant, Row
    from quoin.bench.rows import choose_rows
    from quoin.bench.runner import run_row

__all__ = [
    "Contestant",
    "Finding",
    "Measured",
    "Row",
    "Side",
    "attention_findings",
    "attention_tables",
    "choose_rows",
    "run_row",
    "summary",
]

export_lazily(__name__)
