"""Generators that are a function of a key, so that order, splits and generated data never depend on what ran before."""

import hashlib

import torch

__all__ = ["keyed_generator", "keyed_seed"]


def keyed_seed(*key: str | int) -> int:
    """The seed that SHA-256 gives `key`: near keys such as (seed, 0) and (seed, 1) give unrelated ones."""
    digest = hashlib.sha256(repr(key).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1  # 63 bits: manual_seed reads its argument as a signed number


def keyed_generator(*key: str | int) -> torch.Generator:
    """A CPU generator with the seed of `key`."""
    return torch.Generator().manual_seed(keyed_seed(*key))
