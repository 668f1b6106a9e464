"""Tensors in pictures: boxes whose legs are indices, unit balls, two terms that grow against each other, matrices typed
by hand."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.errors import UserError, format_value
from quoin.lab.parts.claim_forms import form_of
from quoin.lab.parts.picture import Axes, Picture
from quoin.notes.claims.linear_algebra import p_norm_takes_moduli
from quoin.tensor import CP, cp_rank, cp_tensor, frobenius_norm, norm, pure_tensor
from quoin.tensor.einsum import Indexed, parse_einsum

__all__ = [
    "UNREACHED",
    "ball",
    "draw_discs",
    "draw_legs",
    "length",
    "parse_legs",
    "parse_matrix",
    "rank_of_the_limit",
    "two_terms",
]

MOST_PRODUCTS = 200_000
E1, E2 = torch.eye(2, dtype=torch.float64)
UNREACHED = pure_tensor(E1, E1, E2) + pure_tensor(E1, E2, E1) + pure_tensor(E2, E1, E1)


def parse_legs(spec: str, shapes: str) -> tuple[Indexed, dict[str, int], list[tuple[int, ...]]]:
    """The indices of an einsum, the size of each, and the shapes typed as "2 3, 3 4"; a UserError where they do not
    fit."""
    try:
        given = [tuple(int(size) for size in part.split()) for part in shapes.split(",")]
    except ValueError:
        raise UserError(f"expected shapes such as 2 3, 3 4, got {format_value(shapes)}; write whole numbers") from None
    if len(given) > 4 or any(not 1 <= size <= 64 for shape in given for size in shape):
        raise UserError("expected at most four shapes with sizes from 1 to 64; write smaller ones")
    if "." in spec:
        raise UserError("expected every index as a letter, got dots; name the axes")
    indexed, sizes = parse_einsum(spec, tuple(given))
    if math.prod(sizes.values()) > MOST_PRODUCTS:
        raise UserError(f"expected at most {MOST_PRODUCTS:,} products, got more; write smaller sizes")
    return indexed, dict(sizes), given


def draw_legs(
    picture: Picture, terms: Sequence[Sequence[str]], output: Sequence[str], sizes: dict[str, int], role: str
) -> None:
    """A box for each operand and one for the result. An index is a dot tied to every box that has it: above, in
    vermilion, where it is summed; below, at the result, where it stays."""
    axes = picture.axes((-0.6, 3.6), (-0.3, 3.6), box=(10, 10, 620, 330), bare=True)
    spots = [1.5 + (place - (len(terms) - 1) / 2) * 1.2 for place in range(len(terms))]
    summed = [index for index in sizes if index not in output]
    kept = {index: (1.5 + (place - (len(output) - 1) / 2) * 0.7, 0.85) for place, index in enumerate(output)}
    where = {index: (1.5 + (place - (len(summed) - 1) / 2) * 0.8, 3.1) for place, index in enumerate(summed)} | kept
    for index, (x, y) in where.items():
        color = role if index in kept else "change"
        for spot, term in zip(spots, terms):
            for turn in range(list(term).count(index)):
                axes.line([spot + 0.12 * turn, x], [2.0, y], color, width=2, label=f"{index} of size {sizes[index]}")
        if index in kept:
            axes.line([x, 1.5], [y, 0.2], color, width=2)
        axes.points([x], [y], color, size=6)
    for index, (x, y) in where.items():  # over all lines, whose ends would strike them through
        axes.text(x + 0.07, y, f"{index} = {sizes[index]}", role if index in kept else "change", dy=-6)
    names = ["".join(term) for term in terms]
    for spot, term, letter in zip(spots, names, "ABCD"):
        _box(axes, spot, 2.0, f"{letter}  {term}", "ink")
    _box(axes, 1.5, 0.2, "result  " + ("".join(output) or "a number"), role)
    axes.text(-0.55, 3.05, "summed", "change")
    axes.text(-0.55, 0.8, "kept", role)


def _box(axes: Axes, x: float, y: float, text: str, role: str) -> None:
    wide = 0.1 + 0.035 * len(text)
    axes.polygon(
        [(x - wide, y - 0.2), (x + wide, y - 0.2), (x + wide, y + 0.2), (x - wide, y + 0.2)], "paper", edge=role
    )
    axes.text(x, y, text, role, anchor="middle", dy=5)


def length(x: Float[Tensor, " n"], p: float) -> float:
    """(Σ|x_i|^p)^(1/p) for every p > 0: `norm` where it is one, and below 1 the printed form of the moduli."""
    return float(norm(x, p) if p >= 1 else form_of(p_norm_takes_moduli, True)(x.abs(), p))


@functools.lru_cache(maxsize=128)
def ball(p: float, printed: bool) -> list[tuple[float, float]]:
    """Where rays from 0 reach length 1; as printed, without moduli, some never do and are left out (NaN)."""
    form: Callable[[Tensor, float], float] = (
        (lambda x, p: float(form_of(p_norm_takes_moduli, True)(x, p))) if printed and math.isfinite(p) else length
    )
    found = []
    for angle in range(0, 361, 3):
        x = torch.tensor([math.cos(math.radians(angle)), math.sin(math.radians(angle))], dtype=torch.float64)
        x = torch.where(x.abs() < 1e-12, 0.0, x)
        size = form(x, p)
        reached = math.isfinite(size) and size > 0.1
        found.append((float(x[0]) / size, float(x[1]) / size) if reached else (math.nan, math.nan))
    return found


def two_terms(epsilon: float) -> CP:
    """(e1 + ε e2)⊗³/ε - e1⊗³/ε as two pure tensors, with how far they miss e1e1e2 + e1e2e1 + e2e1e1."""
    columns = torch.stack([E1 + epsilon * E2, E1], dim=1)
    factors = (columns * torch.tensor([1.0, -1.0], dtype=torch.float64) / epsilon, columns, columns)
    size = float(frobenius_norm(UNREACHED.flatten(1)))
    missing = float(frobenius_norm((UNREACHED - cp_tensor(*factors)).flatten(1)))
    largest = max(float(torch.stack([norm(factor[:, term]) for factor in factors]).prod()) for term in range(2))
    return CP(factors, missing / size, largest / size)


@functools.lru_cache(maxsize=1)
def rank_of_the_limit() -> int:
    """The rank of what the two terms tend to."""
    bounds = cp_rank(UNREACHED, generator=torch.Generator().manual_seed(0))
    return bounds.lower if bounds.is_tight else 0


def parse_matrix(text: str) -> Float[Tensor, "rows columns"]:
    """A matrix typed with a row on each line, numbers apart by blanks or commas."""
    rows = [line.replace(",", " ").split() for line in text.strip().splitlines() if line.strip()]
    if not rows or len(rows) > 8 or not 1 <= len(rows[0]) <= 8:
        raise UserError("expected one to eight rows of one to eight numbers; write a row on each line")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows[0]):
            raise UserError(f"expected {len(rows[0])} numbers in row {number}, got {len(row)}; complete it")
    try:
        values = torch.tensor([[float(cell) for cell in row] for row in rows], dtype=torch.float64)
    except ValueError as error:
        got = str(error).rpartition(":")[2].strip()[:20]
        raise UserError(f"expected numbers, got {got}; write them with a point") from None
    if not bool((values.abs() < 1e9).all()):
        raise UserError("expected finite numbers below 10⁹; write smaller ones")
    return values


def draw_discs(axes: Axes, centers: Sequence[float], radii: Sequence[float], values: Sequence[complex]) -> None:
    """Gershgorin's discs and the eigenvalues in the complex plane."""
    for center, radius in zip(centers, radii):
        axes.circle((center, 0.0), max(radius, 1e-3), "model")
    axes.points([z.real for z in values], [z.imag for z in values], "ink", size=5, labels=[f"{z:.3g}" for z in values])
