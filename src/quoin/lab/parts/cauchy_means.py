"""Means of Cauchy variables, which have no mean to settle at: that of n of them is as wide as one alone."""

from __future__ import annotations

import functools
import math

import torch
from jaxtyping import Float
from torch import Tensor

from quoin.lab.parts.exhibit import Number, View
from quoin.lab.parts.picture import Picture
from quoin.prob import iid_sample, running_means

__all__ = ["MOST_DRAWS", "cauchy_view"]

MOST_DRAWS, _NUM_PATHS, _NUM_SHOWN = 100, 2000, 6
_CAUCHY, _NORMAL = torch.distributions.Cauchy(0.0, 1.0), torch.distributions.Normal(0.0, 1.0)
_WIDE, _BIN = 6.0, 0.5


@functools.cache
def _means() -> Float[Tensor, "path draw"]:
    return running_means(iid_sample(_CAUCHY.icdf, _NUM_PATHS, MOST_DRAWS, generator=torch.Generator().manual_seed(0)))


def cauchy_view(n: int) -> View:
    """Six running means up to `n` draws, and where the means of two thousand samples of `n` lie."""
    means = _means()
    last = means[:, n - 1]
    far = float((last.abs() > 1).double().mean())
    picture = Picture(f"Means of {n} Cauchy variables: {far:.0%} are farther than 1 from 0, as many as of one alone.")
    left = picture.axes(
        (1, MOST_DRAWS), (-_WIDE, _WIDE), box=(46, 26, 250, 320), title="six running means", x_label="draws"
    )
    for path in means[:_NUM_SHOWN, :n]:
        left.line(range(1, n + 1), path, "model", width=1.4)
    left.points([n] * _NUM_SHOWN, last[:_NUM_SHOWN], "model", size=3.5)
    right = picture.axes((-_WIDE, _WIDE), (0, 0.4), box=(360, 26, 262, 320), title=f"means of {n}", x_label="mean")
    edges = torch.arange(-_WIDE, _WIDE + _BIN, _BIN, dtype=torch.float64)
    counts = torch.histogram(last, edges).hist
    right.bars(counts / (_NUM_PATHS * _BIN), "model 45%", positions=edges[:-1] + _BIN / 2, width=0.9 * _BIN)
    line = torch.linspace(-_WIDE, _WIDE, 121)
    right.line(line, _CAUCHY.log_prob(line).exp(), "ink")
    right.text(_WIDE, 0.38, "line: one variable", anchor="end")
    return View(
        picture,
        [
            Number("means farther than 1 from 0", far),
            Number("exactly, for every n", float(2 * _CAUCHY.cdf(torch.tensor(-1.0)))),
            Number("if they were normal", float(2 * _NORMAL.cdf(torch.tensor(-math.sqrt(n))))),
        ],
        reached=n >= 50,
        code=(
            "import torch\n"
            "from quoin.prob import iid_sample, running_means\n"
            "quantile, generator = torch.distributions.Cauchy(0.0, 1.0).icdf, torch.Generator().manual_seed(0)\n"
            f"means = running_means(iid_sample(quantile, {_NUM_PATHS}, {MOST_DRAWS}, generator=generator))\n"
            f"print(float((means[:, {n} - 1].abs() > 1).double().mean()))"
        ),
    )
