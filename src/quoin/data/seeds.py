"""Generators that are a function of a key, so that order, splits and generated data never depend on what ran before."""

import hashlib

import torch

__all__ = ["keyed_generator"]


def keyed_generator(*key: str | int) -> torch.Generator:
    """A CPU generator seeded by SHA-256 of `key`: near keys such as (seed, 0) and (seed, 1) give unrelated streams."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    # 63 bits: manual_seed reads its argument as a signed number.
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)
