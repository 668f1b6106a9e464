"""The notes and your runs alive in the browser: marimo notebooks, a page for runs, errata, a gallery."""

from quoin.lab.catalog import PAGES, PageInfo

__all__ = ["PAGES", "PageInfo"]
