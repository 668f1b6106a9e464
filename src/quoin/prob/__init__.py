"""Chance: Gaussians, mixtures, Markov chains, limits, divergences between laws."""

__all__: list[str] = []
