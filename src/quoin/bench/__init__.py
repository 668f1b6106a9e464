"""Quoin beside its peers: speed, memory and quality in one table."""

__all__: list[str] = []
