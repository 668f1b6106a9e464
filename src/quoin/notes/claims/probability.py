"""Finite probability: distributions, independence, conditioning and its misprints, Bayes' rule, moments, likelihood."""

import math
from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch import distributions as families

from quoin.errors import UserError
from quoin.notes.claims.claim import Evidence, claim
from quoin.notes.claims.random_tensors import uniform
from quoin.notes.claims.rounding import gap, max, randint, roundings
from quoin.prob import (
    ProbabilitySpace,
    RandomVariable,
    are_independent,
    bayes_rule,
    bayes_rule_from_log,
    condition_discrete,
    conditional_table,
    covariance,
    distribution_of,
    expectation,
    independence_gap,
    joint_from_conditional,
    joint_table,
    log_likelihood,
    mle,
    variance,
)

CASES = 50
QUADRATURE = 1e-12  # for the fourth moment of a normal distribution


def random_distribution(size: int, generator: torch.Generator, *, zeros: int = 0) -> Float[Tensor, "n"]:
    weights = torch.rand(size, generator=generator, dtype=torch.float64) + 0.05
    weights[torch.randperm(size, generator=generator)[:zeros]] = 0
    return weights / weights.sum()


def random_space(generator: torch.Generator) -> ProbabilitySpace:
    size = randint(4, 12, generator)
    return ProbabilitySpace(range(size), random_distribution(size, generator, zeros=1))


def random_variable(space: ProbabilitySpace, num_values: int, generator: torch.Generator) -> RandomVariable:
    values = torch.randint(-num_values, num_values, (len(space.outcomes),), generator=generator).tolist()
    return RandomVariable(space, lambda outcome: values[outcome])


def random_joint(generator: torch.Generator) -> Float[Tensor, "n m"]:
    """A table with a column of zeros among the others."""
    n, m = randint(2, 4, generator), randint(3, 5, generator)
    joint = random_distribution(n * m, generator).reshape(n, m)
    joint[:, randint(0, m - 1, generator)] = 0
    return joint / joint.sum()


@claim("Z2.8", "Bayes' rule gives what counting in the space gives, 0 where P(A) = 0, and has no answer where P(B) = 0")
def bayes_is_counting(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        space = random_space(generator)
        cause, seen = random_variable(space, 2, generator), random_variable(space, 2, generator)
        prior = distribution_of(cause).probabilities
        for value in seen.values:
            if not float(space.probability(takes(seen, value))) <= 0:
                worst = max(worst, _far_from_counting(space, cause, takes(seen, value)))
        try:
            bayes_rule(prior, torch.where(prior > 0, 0.0, 1.0).double())
            worst = math.inf
        except UserError:
            pass
    return Evidence(
        "largest |Bayes - counted|", worst, roundings(32), "32 float64 roundings; inf if P(B) = 0 is answered", CASES
    )


def takes(variable: RandomVariable, value: int) -> Callable[[int], bool]:
    """The event {X = value}."""
    return lambda outcome: variable(outcome) == value


def _far_from_counting(space: ProbabilitySpace, cause: RandomVariable, happened: Callable[[int], bool]) -> float:
    prior = distribution_of(cause).probabilities
    likelihood = torch.full_like(prior, 0.5)  # P(B | A) where P(A) = 0 may be anything
    for index, value in enumerate(cause.values):
        if float(prior[index]) > 0:
            likelihood[index] = space.given(takes(cause, value)).probability(happened)
    both = [space.probability(lambda w, value=value: happened(w) and cause(w) == value) for value in cause.values]
    counted = torch.stack(both) / space.probability(happened)
    return max(gap(bayes_rule(prior, likelihood), counted), gap(bayes_rule_from_log(prior, likelihood.log()), counted))


@claim(
    "Z2.9",
    "Var X = E X² - (E X)², Var(X + Y) = Var X + Var Y + 2 Cov(X, Y), and standard distributions have the moments "
    "they are known for",
)
def moments_are_consistent(generator: torch.Generator) -> Evidence:
    worst = 0.0  # in roundings
    for _ in range(CASES):
        space = random_space(generator)
        x, y = random_variable(space, 5, generator), random_variable(space, 5, generator)
        total = variance(space, lambda w, x=x, y=y: x(w) + y(w))
        worst = max(worst, gap(variance(x), expectation(x, lambda v: v**2) - expectation(x) ** 2) / roundings(1))
        worst = max(worst, gap(total, variance(x) + variance(y) + 2 * covariance(space, x, y)) / roundings(1))
        mean, std = (torch.tensor(uniform(low, 3, generator), dtype=torch.float64) for low in (-3, 0.2))
        fourth = expectation(families.Normal(mean, std), lambda v, mean=mean: (v - mean) ** 4)
        worst = max(worst, gap(fourth / std**4, torch.tensor(3.0)) / QUADRATURE)
        poisson = families.Poisson(torch.tensor(uniform(0.1, 9, generator), dtype=torch.float64))
        worst = max(worst, gap(variance(poisson), expectation(poisson)) / roundings(1))
    source = "1000 float64 roundings; 1e-9 of quadrature"
    return Evidence("largest violation, in roundings or in 1e-12 of quadrature", worst, 1000, source, CASES)


FAMILIES: dict[Any, tuple[str, ...]] = {  # with their parameters
    families.Bernoulli: ("probs",),
    families.Exponential: ("rate",),
    families.Gamma: ("concentration", "rate"),
    families.Geometric: ("probs",),
    families.Laplace: ("loc", "scale"),
    families.Normal: ("loc", "scale"),
    families.Poisson: ("rate",),
}


def _member(family: Any, parameters: dict[str, Tensor]) -> families.Distribution:
    return family(**parameters)


@claim(
    "Z13.5",
    "no parameter near the fitted one has a larger likelihood; for a coin with n_H heads in n throws it is n_H / n",
    not_shown="that the maximum is global: parameters near the fitted one",
)
def fitted_distributions_are_most_probable(generator: torch.Generator) -> Evidence:
    larger, tried = 0, 0
    for family, names in FAMILIES.items():
        for _ in range(10):
            true = _member(
                family, {name: torch.tensor(uniform(0.2, 0.8, generator), dtype=torch.float64) for name in names}
            )
            data = true.sample(
                (randint(5, 40, generator),)
            )  # from the seeded global generator, as torch's distributions do
            data[:2] = (
                torch.tensor([0.0, 1.0]) if family is families.Bernoulli else 1 + torch.arange(2.0)
            )  # never all alike
            fitted = mle(family, data)
            found = {name: getattr(fitted, name) for name in names}
            best = log_likelihood(fitted, data)
            for name, factor in ((name, factor) for name in names for factor in (0.98, 0.999, 1.001, 1.02)):
                moved = {**found, name: (found[name] * factor).clamp(max=1 - 1e-9 if name == "probs" else math.inf)}
                larger += not bool(
                    log_likelihood(_member(family, moved), data) <= best + roundings(256) * best.abs().clamp(min=1)
                )
                tried += 1
            if family is families.Bernoulli:
                larger += not abs(float(fitted.mean) - int(data.sum()) / len(data)) <= roundings(4)
    return Evidence("larger likelihoods, and coins not at n_H / n", larger, 0, "exact: a count", tried, "==")


@claim(
    "D5-3", "E f(X) summed over outcomes equals the sum over X's values under its distribution, and P[X in A] = P_X[A]"
)
def the_distribution_is_enough(generator: torch.Generator) -> Evidence:
    worst = 0.0
    for _ in range(CASES):
        space = random_space(generator)
        x = random_variable(space, 3, generator)
        table = torch.randn(7, generator=generator, dtype=torch.float64)
        f = lambda v, table=table: float(table[v + 3])  # noqa: E731
        worst = max(worst, gap(expectation(x, f), expectation(distribution_of(x), f)))
        inside = lambda v, table=table: bool(table[v + 3] > 0)  # noqa: E731
        worst = max(
            worst,
            gap(space.probability(lambda w, x=x, inside=inside: inside(x(w))), distribution_of(x).probability(inside)),
        )
    return Evidence(
        "largest |sum over outcomes - sum over values|", worst, roundings(16), "16 float64 roundings", CASES
    )


@claim(
    "D5-4",
    "for f and g into [0, 1], |E fg - Ef Eg| is never above the largest |P[A, A'] - P[A]P[A']|: both vanish together",
    not_shown="spaces that are not finite, and all pairs of functions: 200 random ones beside every pair of events",
)
def events_or_functions(generator: torch.Generator) -> Evidence:
    worst, wrong = 0.0, 0
    for case in range(CASES):
        n, m = randint(2, 4, generator), randint(2, 4, generator)
        p, q = random_distribution(n, generator), random_distribution(m, generator)
        table = p[:, None] * q if case % 2 else random_distribution(n * m, generator).reshape(n, m)
        space = ProbabilitySpace([(i, j) for i in range(n) for j in range(m)], table.flatten())
        x, y = RandomVariable(space, lambda w: w[0]), RandomVariable(space, lambda w: w[1])
        joint = joint_table(x, y)
        apart = joint - joint.sum(dim=1, keepdim=True) * joint.sum(dim=0)

        rows, columns = _indicators(n), _indicators(m)
        of_events = (rows @ apart @ columns.T).abs().max()
        f, g = (torch.rand(200, size, generator=generator, dtype=torch.float64) for size in (n, m))
        of_functions = ((f @ apart) * g).sum(dim=1).abs().max()
        product = covariance(
            space, lambda w, f=f: f[0, w[0]], lambda w, g=g: g[0, w[1]]
        )  # E fg - Ef Eg by the space itself
        worst = max(worst, float(of_functions - of_events), gap(product, (f[0] @ apart @ g[0])))
        wrong += are_independent(x, y) != bool(case % 2) or (float(of_events) > 1e-9) == bool(case % 2)
    value = worst if wrong == 0 else math.inf
    return Evidence(
        "by how much functions differ more than events",
        value,
        roundings(16),
        "convexity, and 16 float64 roundings",
        CASES,
    )


def _indicators(size: int) -> Tensor:  # (2^size, size): every event
    return (torch.arange(2**size)[:, None] >> torch.arange(size) & 1).double()


@claim(
    "D5-10",
    "conditional distributions give the joint distribution back, are fixed where P[Y = y] > 0, and all equal P_X "
    "iff X, Y are independent",
    not_shown="spaces that are not finite (see the claim for densities)",
)
def conditional_distributions(generator: torch.Generator) -> Evidence:
    worst, wrong = 0.0, 0
    for case in range(CASES):
        joint = random_joint(generator)
        n, m = joint.shape
        if case % 2:
            joint = random_distribution(n, generator)[:, None] * joint.sum(dim=0)
        of_y, of_x = joint.sum(dim=0), joint.sum(dim=1)
        kernel = conditional_table(joint)
        worst = max(worst, gap(joint_from_conditional(kernel, of_y), joint))
        row = randint(0, m - 1, generator)
        other = kernel.clone()
        other[row] = random_distribution(n, generator)
        change = (joint_from_conditional(other, of_y) - joint).abs().max()
        worst = max(
            worst, gap(change, of_y[row] * (other[row] - kernel[row]).abs().max())
        )  # nothing where P[Y = y] = 0
        worst = max(worst, *(gap(condition_discrete(joint, y), kernel[y]) for y in range(m) if float(of_y[y]) > 0))
        same = float((kernel[of_y > 0] - of_x).abs().max()) < 1e-9
        wrong += same != bool(case % 2) or (float(independence_gap(joint)) < 1e-9) != same
    return Evidence(
        "largest distance from what is stated",
        worst if wrong == 0 else math.inf,
        roundings(16),
        "16 float64 roundings",
        CASES,
    )


def gives_the_pair(kernel: Float[Tensor, "m n"], joint: Float[Tensor, "n m"]) -> float:
    """P[X in A, Y in B] for all A and B: on finite sets, for all points."""
    return gap(joint_from_conditional(kernel, joint.sum(dim=0)), joint)


def gives_x_alone(kernel: Float[Tensor, "m n"], joint: Float[Tensor, "n m"]) -> float:
    """P[X in A] for all A: B is the whole space only."""
    return gap(joint_from_conditional(kernel, joint.sum(dim=0)).sum(dim=1), joint.sum(dim=1))


@claim(
    "DE35",
    "the condition on a conditional distribution lets through one kernel only",
    right=gives_the_pair,
    printed=gives_x_alone,
)
def the_condition_fixes_the_kernel(form: Callable[[Tensor, Tensor], float], generator: torch.Generator) -> Evidence:
    coin = joint_table(*[RandomVariable(ProbabilitySpace.uniform("HT"), str)] * 2)  # Y = X
    wrong, cases, example = 0, 0, ""
    for joint in [coin, *(random_joint(generator) for _ in range(CASES))]:
        constant = joint.sum(dim=1).expand(joint.shape[1], -1)
        true_passes = form(conditional_table(joint), joint) <= roundings(16)
        constant_passes = form(constant, joint) <= roundings(16)
        wrong += (not true_passes) + constant_passes
        cases += 2
        if constant_passes and not example:
            example = "X = Y a fair coin: the constant kernel P_X passes, and says nothing of Y"
    return Evidence("kernels classified wrongly", wrong, 0, "exact: a count", cases, "==", counterexample=example)


def zero_elsewhere(joint: Float[Tensor, "n m"]) -> Float[Tensor, "m n"]:
    total = joint.sum(dim=0)[:, None]
    return torch.where(total == 0, 0, joint.T / torch.where(total == 0, 1, total))


@claim(
    "DE36",
    "a conditional distribution is a probability for every y, also where P[Y = y] = 0",
    right=conditional_table,
    printed=zero_elsewhere,
)
def every_row_is_a_distribution(form: Callable[[Tensor], Tensor], generator: torch.Generator) -> Evidence:
    worst, example = 0.0, ""
    for _ in range(CASES):
        kernel = form(random_joint(generator))
        off = (kernel.sum(dim=1) - 1).abs()
        worst = max(worst, float(off.max()))
        if float(off.max()) > 0.5:
            example = f"row {int(off.argmax())} has total mass {float(kernel[off.argmax()].sum()):g}"
    return Evidence(
        "largest |mass of a row - 1|", worst, roundings(16), "16 float64 roundings", CASES, counterexample=example
    )
