"""Chance in tests: a generator of its own for whatever is drawn, so that no test hangs on what ran before it."""

import torch

__all__ = ["seeded"]


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)
