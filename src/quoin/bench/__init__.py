"""Quoin beside its peers: speed, memory and quality in one table."""

from quoin.bench.measured import Measured, Side, summary
from quoin.bench.rows import Contestant, Row, choose_rows
from quoin.bench.runner import run_row

__all__ = ["Contestant", "Measured", "Row", "Side", "choose_rows", "run_row", "summary"]
