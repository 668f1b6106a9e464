"""One run per file: its options, its target, and how the parts are put together. `quoin.runs` finds, trains and opens them."""

__all__: list[str] = []
