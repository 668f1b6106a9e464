"""Linear regression: its loss, its gradient steps, and why least squares is maximum likelihood."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from quoin.claims.claim import Evidence, claim
from quoin.claims.rounding import gap, randint, roundings
from quoin.models import LinearRegression, least_squares, linear_regression_definition
from quoin.objectives import empirical_risk, gaussian_nll, squared_loss

CASES = 50
ROUNDING = roundings(256)
ROUNDING_SOURCE = "256 float64 roundings, for sums of at most 32 examples of at most 8 features"


class Problem(NamedTuple):
    """A minibatch and the place from which a step is taken."""

    X: Tensor  # (n, d)
    y: Tensor  # (n,)
    weight: Tensor  # (d,)
    bias: Tensor  # ()
    learning_rate: float
    decay: float

    @property
    def residual(self) -> Tensor:
        return self.X @ self.weight + self.bias - self.y


def random_problem(generator: torch.Generator, *, overdetermined: bool = False) -> Problem:
    num_features = randint(1, 8, generator)
    num_examples = randint(2 * num_features + 2, 32, generator) if overdetermined else randint(2, 32, generator)

    def normal(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    learning_rate, decay = (0.05 + 0.45 * torch.rand(2, generator=generator, dtype=torch.float64)).tolist()
    return Problem(normal(num_examples, num_features), normal(num_examples), normal(num_features), normal(), learning_rate, decay)


def model_at(problem: Problem) -> LinearRegression:
    model = LinearRegression(len(problem.weight)).double()
    with torch.no_grad():
        model.linear.weight.copy_(problem.weight.unsqueeze(0))
        model.linear.bias.copy_(problem.bias.unsqueeze(0))
    return model


def autograd_step(problem: Problem, *, penalty: float = 0.0, weight_decay: float = 0.0) -> tuple[Tensor, Tensor]:
    """(w, b) after one SGD step on the model, by automatic differentiation of the loss plus penalty * |w|^2 / 2."""
    model = model_at(problem)
    groups = [{"params": [model.linear.weight], "weight_decay": weight_decay}, {"params": [model.linear.bias]}]
    optimiser = torch.optim.SGD(groups, lr=problem.learning_rate)
    loss = empirical_risk(squared_loss, model(problem.X), problem.y) + penalty * model.linear.weight.square().sum() / 2
    loss.backward()
    optimiser.step()
    return model.linear.weight.detach().squeeze(0), model.linear.bias.detach().squeeze(0)


@claim("Z3.4", "the half in the squared loss cancels: its derivative in the prediction is the residual")
def derivative_of_the_squared_loss(generator: torch.Generator) -> Evidence:
    prediction, target = torch.randn(2, 1000, generator=generator, dtype=torch.float64)
    prediction.requires_grad_()
    squared_loss(prediction, target).sum().backward()
    assert prediction.grad is not None
    worst = gap(prediction.grad, prediction.detach() - target)
    return Evidence("largest |dl/dŷ - (ŷ - y)|", worst, roundings(2), "2 float64 roundings", 1000)


@claim("Z3.5", "doubling a residual quadruples its loss")
def quadratic_growth(generator: torch.Generator) -> Evidence:
    residual = torch.randn(1000, generator=generator, dtype=torch.float64)
    at_zero = torch.zeros_like(residual)
    ratio = squared_loss(2 * residual, at_zero) / squared_loss(residual, at_zero)
    worst = gap(ratio, torch.full_like(ratio, 4))
    return Evidence("largest |l(2r) / l(r) - 4|, relative", worst, 0.0, "exact: powers of two do not round", 1000)


@claim("Z3.5", "one outlier of size t drags a least-squares constant by t/n, without limit, and leaves the median where it was")
def outlier_moves_the_fit(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        y = torch.randn(2 * randint(2, 15, generator) + 1, generator=generator, dtype=torch.float64)
        moved, size = y.clone(), 10.0 ** randint(1, 6, generator)
        moved[y.argmax()] += size
        no_features = y.new_empty(len(y), 0)
        shift = least_squares(no_features, moved).bias - least_squares(no_features, y).bias
        worst = max(worst, gap(shift * len(y) / size, torch.ones_like(shift)), gap(moved.median(), y.median()))
    return Evidence("largest |shift · n/t - 1| and shift of the median", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.9", "a minibatch step moves w by -(η/|B|) Σ x (wᵀx + b - y)")
def weight_update(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        stepped, _bias = autograd_step(p)
        closed = p.weight - p.learning_rate / len(p.y) * sum(r * x for r, x in zip(p.residual, p.X))
        worst = max(worst, gap(closed, stepped))
    return Evidence("largest |closed form - autograd step| in w", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def bias_from_bias(p: Problem) -> Tensor:
    return p.bias - p.learning_rate / len(p.y) * p.residual.sum()


def bias_from_weight(p: Problem) -> Tensor:
    return p.weight - p.learning_rate / len(p.y) * p.residual.sum()


@claim("Z3.10", "a minibatch step moves b by -(η/|B|) Σ (wᵀx + b - y)")
def bias_update(generator: torch.Generator) -> Evidence:
    return bias_update_evidence(bias_from_bias, generator)


@claim("ZE7", "the new bias starts from the old bias, not from the weights", right=bias_from_bias, printed=bias_from_weight)
def bias_update_starts_from_the_bias(form, generator: torch.Generator) -> Evidence:
    return bias_update_evidence(form, generator)


def bias_update_evidence(form, generator: torch.Generator) -> Evidence:
    problems = [random_problem(generator) for _ in range(CASES)]
    worst = max(gap(form(p), autograd_step(p)[1]) for p in problems)
    return Evidence("largest |closed form - autograd step| in b", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def one_row(p: Problem, row: int) -> Tensor:
    return p.X[row] @ p.weight + p.bias


def all_rows(p: Problem, row: int) -> Tensor:
    return p.X @ p.weight + p.bias


@claim("ZE4", "the prediction for one example is wᵀx + b, one entry of the vector Xw + b·1", right=one_row, printed=all_rows)
def one_example_is_one_row(form, generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        with torch.no_grad():
            predictions = model_at(p)(p.X)
        worst = max(worst, *(gap(form(p, row), predictions[row]) for row in range(len(p.y))))
    return Evidence("largest |formula - prediction of the row|", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.32", "a step on the loss plus λ|w|²/2 shrinks w by 1 - ηλ and then descends; it is SGD with weight decay λ")
def weight_decay_update(generator: torch.Generator) -> Evidence:
    problems = [random_problem(generator) for _ in range(CASES)]
    worst = 0.0
    for p in problems:
        penalised, decayed = autograd_step(p, penalty=p.decay), autograd_step(p, weight_decay=p.decay)
        worst = max(worst, gap(shrunk(p), penalised[0]), gap(decayed[0], penalised[0]), gap(decayed[1], penalised[1]))
    return Evidence("largest difference among the three steps", worst, ROUNDING, ROUNDING_SOURCE, CASES)


def shrunk(p: Problem) -> Tensor:
    return (1 - p.learning_rate * p.decay) * p.weight - p.learning_rate / len(p.y) * p.residual @ p.X


def not_shrunk(p: Problem) -> Tensor:
    return p.weight - p.learning_rate / len(p.y) * p.residual @ p.X


@claim("ZE11", "the factor 1 - ηλ stays in the weight-decay step to its end", right=shrunk, printed=not_shrunk)
def weight_decay_keeps_its_factor(form, generator: torch.Generator) -> Evidence:
    problems = [random_problem(generator) for _ in range(CASES)]
    worst = max(gap(form(p), autograd_step(p, penalty=p.decay)[0]) for p in problems)
    return Evidence("largest |closed form - penalised autograd step| in w", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.13", "under independent noise the likelihood of all targets is the product of the likelihoods of each")
def likelihood_factorises(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator)
        scale = p.learning_rate + 0.5
        mean = linear_regression_definition(p.X, p.weight, p.bias)
        covariance = scale**2 * torch.eye(len(p.y), dtype=torch.float64)
        joint = torch.distributions.MultivariateNormal(mean, covariance).log_prob(p.y)
        worst = max(worst, gap(-gaussian_nll(mean, p.y, scale).sum(), joint))
    return Evidence("largest |Σ log p(y_i|x_i) - log p(y|X)|, relative", worst, ROUNDING, ROUNDING_SOURCE, CASES)


@claim("Z3.15", "the least-squares fit is the maximum of the Gaussian likelihood, whatever the scale of the noise")
def least_squares_is_maximum_likelihood(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        p = random_problem(generator, overdetermined=True)
        scale = p.learning_rate + 0.5

        def nll(parameters: Tensor, p: Problem = p, scale: float = scale) -> Tensor:
            return gaussian_nll(linear_regression_definition(p.X, parameters[:-1], parameters[-1]), p.y, scale).sum()

        # The negative log-likelihood is quadratic, so one Newton step from anywhere lands on its minimum.
        start = torch.cat([p.weight, p.bias.unsqueeze(0)])
        gradient = torch.autograd.functional.jacobian(nll, start)
        hessian = torch.autograd.functional.hessian(nll, start)
        likeliest = start - torch.linalg.solve(hessian, gradient)
        fit = least_squares(p.X, p.y)
        difference = gap(torch.cat([fit.weight, fit.bias.unsqueeze(0)]), likeliest)
        worst = max(worst, difference / float(torch.linalg.cond(hessian)))
    source = f"{ROUNDING_SOURCE}, each magnified at most by the condition number"
    return Evidence("largest |least squares - maximum likelihood| / condition number", worst, ROUNDING, source, CASES)


@claim("Z3.18", "a product of densities underflows (standard normal at one deviation: to 0 from 525 factors), its log does not")
def product_of_densities_underflows(generator: torch.Generator) -> Evidence:
    one_deviation = torch.ones(1000, dtype=torch.float64)
    losses = gaussian_nll(torch.zeros_like(one_deviation), one_deviation, 1.0)
    product = (-losses).exp().cumprod(dim=0)
    exact = 1000 * (math.log(2 * math.pi) + 1) / 2
    log_is_right = abs(float(losses.sum()) / exact - 1) <= ROUNDING
    first = int((product == 0).nonzero()[0]) + 1 if log_is_right else math.nan
    return Evidence("factors until the product is exactly 0", first, 525, "exact: float64 ends at 2^-1074", 1000, "==")


@claim("Z3.18", "the product of likelihoods and the sum of their logs are largest at the same parameters")
def product_and_sum_of_logs_agree(generator: torch.Generator) -> Evidence:
    different = compared = 0
    for _ in range(CASES):
        p = random_problem(generator)
        steps = torch.linspace(-2, 2, 41, dtype=torch.float64)
        losses = torch.stack([gaussian_nll(linear_regression_definition(p.X, p.weight + s, p.bias), p.y, 1.0) for s in steps])
        losses = losses[losses.sum(dim=1) < 700]  # beyond, the product is no longer a float
        if len(losses) > 1:
            compared += 1
            different += int((-losses).exp().prod(dim=1).argmax() != losses.sum(dim=1).argmin())
    return Evidence("cases with different best parameters", different, 0, "exact: the logarithm is increasing", compared, "==")
