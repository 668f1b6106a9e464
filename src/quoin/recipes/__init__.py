"""One recipe per file: its options, its quality target, its model and task. `quoin.runs` finds, trains and opens
them."""

__all__: list[str] = []
