"""Universal approximation in many variables by the notes' construction: exponentials of linear forms, each replaced by
a ReLU network.

The sum of exponentials is fitted, so its error is measured; replacing e^t on an interval has a certificate. The result
is a network of one hidden layer, and a large one: this is a proof that runs, and a network of the same error is trained
with far fewer units. n points, d inputs, k exponentials
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from quoin.display import shown
from quoin.errors import UserError
from quoin.expressivity.layers_of import affine_layers, relu_network
from quoin.expressivity.modulus import check_interval, evaluate_on_grid
from quoin.expressivity.piecewise import PiecewiseLinear, interpolant, to_relu_network
from quoin.layers import Affine
from quoin.tensor import check_shapes

__all__ = [
    "ExponentialSum",
    "ManyInputApproximation",
    "approximate_nd",
    "exponential_sum_definition",
    "fit_exponentials",
    "interpolated_exponential",
    "sup_error_in_span",
]

_MOST_TERMS = 250
_MOST_ORDER = 12  # beyond it the exponentials reach e^18 and float64 has too few digits for their differences
_LOOKS = 2**13
_RCONDS = [1e-3, 1e-5, 1e-7, 1e-9]
# between frequencies, for a box of half-width one: closer ones need large coefficients, wider ones miss slow functions
_STEP = 1.5


def exponential_sum_definition(
    x: Float[Tensor, "*batch d"], frequencies: Float[Tensor, "k d"], coefficients: Float[Tensor, "k"]
) -> Float[Tensor, "*batch"]:
    """sum_i gamma_i exp(<nu_i, x>); products of such sums are such sums, for exp(<nu, x>) exp(<mu, x>) = exp(<nu + mu,
    x>)."""
    check_shapes("... d, k d, k", x=x, frequencies=frequencies, coefficients=coefficients)
    return (x @ frequencies.T).exp() @ coefficients


@shown
@dataclass(frozen=True, eq=False)
class ExponentialSum:
    """x -> sum_i gamma_i exp(<nu_i, x - centre>): the same span for every centre, and no overflow far from 0."""

    frequencies: Float[Tensor, "k d"]
    coefficients: Float[Tensor, "k"]
    center: Float[Tensor, "d"]

    def __call__(self, x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch"]:
        return exponential_sum_definition(x - self.center, self.frequencies, self.coefficients)


def fit_exponentials(
    x: Float[Tensor, "n d"],
    values: Float[Tensor, "n"],
    frequencies: Float[Tensor, "k d"],
    center: Float[Tensor, "d"],
    rcond: float = 1e-9,
) -> ExponentialSum:
    """The sum of these exponentials nearest to the values in least squares.

    Exponentials of near frequencies are nearly dependent, and the weak directions are those that take large
    coefficients.

    Args:
        frequencies: nu_i.
        center: Subtracted from x in every exponential, so that none overflows far from 0.
        rcond: Directions weaker than this fraction of the strongest are left out.
    """
    check_shapes("n d, n, k d, d", x=x, values=values, frequencies=frequencies, center=center)
    columns = ((x - center) @ frequencies.T).exp()
    solution = torch.linalg.lstsq(columns, values[:, None], rcond=rcond, driver="gelsd").solution[:, 0]
    return ExponentialSum(frequencies, solution, center)


def sup_error_in_span(columns: Float[Tensor, "n k"], values: Float[Tensor, "n"]) -> float:
    """The largest |values - columns c| for the c of least squares: on these points a bound of the span's distance from
    the values."""
    check_shapes("n k, n", columns=columns, values=values)
    solution = torch.linalg.lstsq(columns, values[:, None], rcond=1e-13, driver="gelsd").solution
    return float((columns @ solution - values[:, None]).abs().max())


@shown
@dataclass(frozen=True)
class ManyInputApproximation:
    """A network close to a function of d variables on a box, with the two errors of the construction and what was
    measured in all."""

    network: nn.Sequential
    exponentials: ExponentialSum
    fit_error: float  # the largest |g - exponentials| on a grid: an estimate
    replacement_error: float  # a bound of |exponentials - network| on the whole box
    measured: float  # the largest |g - network| on the grid

    @property
    def num_units(self) -> int:
        return self.network[0].out_features  # type: ignore[return-value]


def approximate_nd(
    g: Callable[[Tensor], Tensor], eps: float, box: Sequence[tuple[float, float]]
) -> ManyInputApproximation:
    """A ReLU network of one hidden layer for g: (n, d) -> (n,) on a box: eps/2 for the exponentials, eps/2 shared by
    their replacements.

    sum_i (sum_l c_il ReLU(a_il <nu_i, x> + b_il) + d_i), the inner sum being the network of t -> gamma_i e^t on the
    values of <nu_i, x>

    Args:
        box: (low, high) of each input.
    """
    ends = [check_interval(side) for side in box]
    if not ends:
        raise UserError("expected a box of at least one side, got none; give one pair (low, high) for each input")
    if not (eps > 0 and math.isfinite(eps)):
        raise UserError(f"expected an error eps above 0, got {eps}; only g itself is nearer than every eps")
    low, high = torch.tensor(ends, dtype=torch.float64).T
    center, half = (low + high) / 2, (high - low) / 2
    grid = center + half * _lattice(
        torch.linspace(-1, 1, max(2, int(_LOOKS ** (1 / len(ends)))), dtype=torch.float64), len(ends)
    )
    seen = evaluate_on_grid(g, grid)
    exponentials = _fitted(g, center, half, lambda fit: float((fit(grid) - seen).abs().max()), eps / 2)
    network, replacement_error = _replaced(exponentials, half, eps / 2)
    with torch.no_grad():
        measured = max(float((network(x)[:, 0] - y).abs().max()) for x, y in zip(grid.split(1024), seen.split(1024)))
    return ManyInputApproximation(
        network, exponentials, float((exponentials(grid) - seen).abs().max()), replacement_error, measured
    )


def _fitted(g, center: Tensor, half: Tensor, error: Callable[[ExponentialSum], float], goal: float) -> ExponentialSum:
    dimension, least = len(center), math.inf
    for order in range(1, _MOST_ORDER + 1):
        lattice = _lattice(torch.arange(-order, order + 1, dtype=torch.float64), dimension)
        lattice = lattice[lattice.abs().sum(dim=1) <= order]  # the corners of the cube have the steepest exponentials
        if len(lattice) > _MOST_TERMS:
            break
        # Chebyshev's points hold the fit down at the edges of the box, where equally spaced ones let it swing.
        count = 4 * order + 3
        x = center + half * _lattice(
            -torch.cos(math.pi * torch.arange(count, dtype=torch.float64) / (count - 1)), dimension
        )
        values = evaluate_on_grid(g, x)
        for rcond in _RCONDS:  # the coarsest that will do has the smallest coefficients, and so needs the fewest units
            fit = fit_exponentials(x, values, _STEP * lattice / half, center, rcond)
            found = error(fit)
            if found <= goal:
                return fit
            least = min(least, found)
    reached = f"sums of exponentials come within {goal:.3g} of, got {least:.3g}"
    raise UserError(f"expected a g of {dimension} inputs that {reached}; ask for a larger eps or a smaller box")


def _replaced(exponentials: ExponentialSum, half: Tensor, eps: float) -> tuple[nn.Sequential, float]:
    """The network in which gamma_i e^t is interpolated on all that <nu_i, x - centre> can be, and a bound of what that
    changes."""
    sizes, radii = exponentials.coefficients.abs(), exponentials.frequencies.abs() @ half
    # A term of error e takes sqrt(|gamma| / 8e) 4 sinh(radius / 2) pieces: these fractions of eps make the number of
    # all least.
    budgets = (sizes * torch.sinh(radii / 2).square()) ** (1 / 3)
    budgets = (0.99 * eps * budgets / budgets.sum()).tolist()
    hidden, outer, constant, error = [], [], 0.0, 0.0
    for frequency, coefficient, radius, budget in zip(
        exponentials.frequencies, exponentials.coefficients, radii.tolist(), budgets
    ):
        if not budget > 0:  # a constant, or nothing
            constant += float(coefficient)
            continue
        function, bound = interpolated_exponential(radius, budget / float(coefficient.abs()))
        inner, last = affine_layers(to_relu_network(function))
        hidden.append(
            Affine(inner.weight * frequency, inner.bias - inner.weight[:, 0] * (frequency @ exponentials.center))
        )
        outer.append(coefficient * last.weight[0])
        constant += float(coefficient * last.bias)
        error += float(coefficient.abs()) * bound
    if not hidden:  # a constant needs no unit, but a layer needs one
        hidden, outer = [Affine(torch.zeros(1, len(half)).double(), torch.zeros(1).double())], [torch.zeros(1).double()]
    first = Affine(torch.cat([each.weight for each in hidden]), torch.cat([each.bias for each in hidden]))
    return relu_network([first, Affine(torch.cat(outer)[None], torch.tensor([constant], dtype=torch.float64))]), error


def interpolated_exponential(radius: float, eps: float) -> tuple[PiecewiseLinear, float]:
    """e^t interpolated on [-radius, radius] to within eps, at points that are equally spaced in e^{t/2}, and the exact
    error.

    A chord over [a, b] of slope m is farthest above e^t where e^t = m, by e^a + m (log m - a) - m.
    """
    pieces = max(1, math.ceil(4 * math.sinh(radius / 2) / math.sqrt(8 * eps)))
    while True:
        knots = 2 * torch.linspace(math.exp(-radius / 2), math.exp(radius / 2), pieces + 1, dtype=torch.float64).log()
        heights, slopes = knots.exp(), knots.exp().diff() / knots.diff()
        error = float((heights[:-1] + slopes * (slopes.log() - knots[:-1]) - slopes).max())
        if error <= eps:
            return interpolant(knots, heights), error
        pieces += 1 + pieces // 50


def _lattice(line: Tensor, dimension: int) -> Tensor:  # (m,) -> (m^d, d)
    return torch.cartesian_prod(*[line] * dimension).reshape(-1, dimension)
