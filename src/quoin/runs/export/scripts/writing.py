"""Samples into a file: .npy, or a picture by Pillow where it is installed."""

import argparse
from pathlib import Path

import numpy as np


def sampling_parser(what: str) -> argparse.ArgumentParser:
    """The words that every script for samples takes."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("-n", "--num-samples", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--noise", type=Path, help=".npy file of the noise to begin with, instead of a seed")
    parser.add_argument("--out", type=Path, default=Path("samples.npy"))
    return parser


def first_noise(asked: argparse.Namespace, shape: list[int], dtype: str) -> np.ndarray:
    """Normal numbers, or those of the file."""
    if asked.noise is not None:
        return np.load(asked.noise).astype(dtype)
    return np.random.default_rng(asked.seed).standard_normal((asked.num_samples, *shape)).astype(dtype)


def class_numbers(name: str | None, class_names: list[str] | None, count: int) -> np.ndarray:
    """The class of each sample: this one, or each in turn."""
    names = class_names or []
    if name is not None and name not in names:
        raise SystemExit(f"no class {name!r}: give one of {', '.join(names)}")
    return np.arange(count) % len(names) if name is None else np.full(count, names.index(name))


def save(samples: np.ndarray, out: Path) -> None:
    """Write the samples and say where."""
    np.save(out, samples)
    print(f"{len(samples)} samples: {out}")
