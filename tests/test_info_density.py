"""Information of densities: integrals against closed forms, SciPy and finite differences; where it is infinite; what is
refused."""

import math

import pytest
import scipy.integrate
import scipy.stats
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch.distributions import (
    Beta,
    Cauchy,
    Exponential,
    Gamma,
    Gumbel,
    HalfNormal,
    Laplace,
    LogNormal,
    MultivariateNormal,
    Normal,
    Pareto,
    StudentT,
    Uniform,
    Weibull,
)
from torch.distributions import kl_divergence as torch_kl_divergence

from quoin.errors import UserError
from quoin.info import (
    conditional_differential_entropy,
    differential_entropy,
    differential_entropy_definition,
    distribution_cross_entropy,
    kl_by_truncation,
    kl_divergence,
    mutual_information_of_density,
)
from quoin.prob import Density, density_kl_divergence_definition, line_quadrature

# A family, how a pair of numbers from [0.5, 2] makes its parameters, and SciPy's name for it.
FAMILIES = {
    "normal": (Normal, lambda a, b: (a - 1, b), lambda a, b: scipy.stats.norm(a - 1, b)),
    "uniform": (Uniform, lambda a, b: (-a, b), lambda a, b: scipy.stats.uniform(-a, a + b)),
    "exponential": (Exponential, lambda a, b: (b,), lambda a, b: scipy.stats.expon(scale=1 / b)),
    "laplace": (Laplace, lambda a, b: (a, b), lambda a, b: scipy.stats.laplace(a, b)),
    "gumbel": (Gumbel, lambda a, b: (a, b), lambda a, b: scipy.stats.gumbel_r(a, b)),
    "gamma": (Gamma, lambda a, b: (a + 1, b), lambda a, b: scipy.stats.gamma(a + 1, scale=1 / b)),
    "beta": (Beta, lambda a, b: (a + 0.5, b + 0.5), lambda a, b: scipy.stats.beta(a + 0.5, b + 0.5)),
    "pareto": (Pareto, lambda a, b: (a, b + 1), lambda a, b: scipy.stats.pareto(b + 1, scale=a)),
    "half-normal": (HalfNormal, lambda a, b: (b,), lambda a, b: scipy.stats.halfnorm(scale=b)),
    "cauchy": (Cauchy, lambda a, b: (a, b), lambda a, b: scipy.stats.cauchy(a, b)),
    "student": (StudentT, lambda a, b: (a + 2, 0.0, b), lambda a, b: scipy.stats.t(a + 2, 0, b)),
    "log-normal": (LogNormal, lambda a, b: (a, b), lambda a, b: scipy.stats.lognorm(b, scale=math.exp(a))),
    "weibull": (Weibull, lambda a, b: (a, b + 0.5), lambda a, b: scipy.stats.weibull_min(b + 0.5, scale=a)),
}
LINE = (-math.inf, -1.0, 0.0, 1.0, math.inf)
number = st.floats(0.5, 2).map(lambda x: round(x, 3))
few = settings(
    max_examples=5, deadline=None, phases=[Phase.explicit, Phase.generate]
)  # shrinking an integral takes minutes


def law(name, a, b, dtype=torch.float64):
    """The torch distribution, and the two tensors that it hangs on."""
    a, b = (torch.tensor(each, dtype=dtype, requires_grad=True) for each in (a, b))
    kind, parameters, _ = FAMILIES[name]
    made = [torch.as_tensor(each, dtype=dtype) for each in parameters(a, b)]
    return kind(*made), (a, b)


def slopes(value, *parameters):
    found = torch.autograd.grad(value, parameters, allow_unused=True, retain_graph=True)
    return torch.stack([torch.zeros((), dtype=torch.float64) if each is None else each.double() for each in found])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_integral_is_the_closed_form_and_scipys(name, dtype):
    @few
    @given(number, number)
    def check(a, b):
        p, parameters = law(name, a, b, dtype)
        by_formula, by_integral = differential_entropy(p), differential_entropy_definition(p)
        tolerance = {"rtol": 0, "atol": 1e-6 if dtype == torch.float64 else 2e-4}
        torch.testing.assert_close(by_integral, by_formula.double(), **tolerance)
        assert by_integral.item() == pytest.approx(float(FAMILIES[name][2](a, b).entropy()), abs=tolerance["atol"])
        torch.testing.assert_close(
            slopes(by_integral, *parameters), slopes(by_formula, *parameters), rtol=1e-3, atol=1e-3
        )

    check()


PAIRS = [
    ("normal", "normal"),
    ("normal", "laplace"),
    ("normal", "gumbel"),
    ("laplace", "normal"),
    ("laplace", "laplace"),
    ("uniform", "normal"),
    ("uniform", "gumbel"),
    ("exponential", "gamma"),
    ("exponential", "normal"),
    ("gamma", "exponential"),
    ("gamma", "gumbel"),
    ("gumbel", "normal"),
    ("beta", "normal"),
    ("beta", "exponential"),
    ("beta", "uniform"),
    ("pareto", "exponential"),
    ("cauchy", "cauchy"),
    ("half-normal", "half-normal"),
]


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_kl_by_integral_is_the_closed_form(first, second):
    @few
    @given(number, number, number, number)
    def check(a, b, c, d):
        (p, of_p), (q, of_q) = law(first, a, b), law(second, c, d)
        by_formula, by_integral = torch_kl_divergence(p, q), density_kl_divergence_definition(p, q)
        torch.testing.assert_close(by_integral, by_formula, rtol=1e-6, atol=1e-6)
        torch.testing.assert_close(kl_divergence(p, q), by_formula)
        if by_formula.isfinite():
            torch.testing.assert_close(
                slopes(by_integral, *of_p, *of_q), slopes(by_formula, *of_p, *of_q), rtol=1e-3, atol=1e-3
            )
            expected = differential_entropy(p) + by_formula
            by_integral = distribution_cross_entropy(Density.from_distribution(p), q)
            torch.testing.assert_close(by_integral, expected, rtol=1e-6, atol=1e-6)
            torch.testing.assert_close(distribution_cross_entropy(p, q), expected)

    check()


def test_kl_without_a_closed_form_is_scipys_integral():
    p, q = StudentT(torch.tensor(4.0, dtype=torch.float64)), Cauchy(torch.tensor(0.3, dtype=torch.float64), 1.5)
    ours, theirs = kl_divergence(p, q), (scipy.stats.t(4), scipy.stats.cauchy(0.3, 1.5))
    known, _ = scipy.integrate.quad(
        lambda x: theirs[0].pdf(x) * (theirs[0].logpdf(x) - theirs[1].logpdf(x)), -math.inf, math.inf
    )
    assert ours.item() == pytest.approx(known, abs=1e-7)
    assert kl_divergence(p, q, base=2).item() == pytest.approx(known / math.log(2), abs=1e-7)


@given(st.floats(0.5, 3), st.floats(0.3, 2))
@few
def test_gradients_of_an_integral_are_those_of_differences(mean, std):
    """Laplace against Cauchy, a pair that torch knows nothing about."""

    def divergence(mean, std):
        return density_kl_divergence_definition(Laplace(mean, std), Cauchy(torch.zeros((), dtype=torch.float64), 1.0))

    at = [torch.tensor(each, dtype=torch.float64, requires_grad=True) for each in (mean, std)]
    torch.autograd.gradcheck(divergence, at, eps=1e-5, atol=1e-4)


def normal_pair(covariance):
    joint = MultivariateNormal(torch.zeros(2, dtype=torch.float64), covariance)

    def density(x, y):  # as the formula has it: torch would factor Σ anew for each of the nodes
        (a, b), (_, c) = torch.linalg.inv(covariance)
        return torch.exp(-(a * x * x + 2 * b * x * y + c * y * y) / 2) / (
            2 * math.pi * torch.linalg.det(covariance).sqrt()
        )

    return joint, Density(density, LINE, LINE, num_nodes=56)


@settings(max_examples=3, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.floats(0.7, 1.4), st.floats(0.7, 1.4), st.floats(-0.7, 0.7))
def test_pairs_by_quadrature_are_normal_pairs_in_closed_form(s, t, correlation):
    covariance = torch.tensor(
        [[s * s, s * t * correlation], [s * t * correlation, t * t]], dtype=torch.float64, requires_grad=True
    )
    joint, density = normal_pair(covariance)
    for ours, known in (
        (differential_entropy(density), math.log(2 * math.pi * math.e) + torch.logdet(covariance) / 2),
        (conditional_differential_entropy(joint, 0), math.log(2 * math.pi * math.e * t**2 * (1 - correlation**2)) / 2),
        (conditional_differential_entropy(density, 0), conditional_differential_entropy(joint, 0)),
        (conditional_differential_entropy(density, 1), conditional_differential_entropy(joint, 1)),
        (mutual_information_of_density(joint, 0), -math.log(1 - correlation**2) / 2),
        (mutual_information_of_density(density, 1), mutual_information_of_density(joint, 0)),
    ):
        assert float(ours.detach()) == pytest.approx(float(torch.as_tensor(known).detach()), abs=2e-5)
    by_integral = torch.autograd.grad(mutual_information_of_density(density, 0), covariance, retain_graph=True)[0]
    by_formula = torch.autograd.grad(mutual_information_of_density(joint, 0), covariance)[0]
    torch.testing.assert_close(by_integral + by_integral.mT, by_formula + by_formula.mT, rtol=1e-3, atol=1e-3)


def test_closed_forms_take_batches():
    root = torch.randn(5, 4, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    covariance = root @ root.mT + torch.eye(4)
    joint = MultivariateNormal(torch.zeros(4, dtype=torch.float64), covariance)
    information = mutual_information_of_density(joint, 0, 2)
    parts = torch.logdet(covariance[:, [0, 2]][:, :, [0, 2]]) + torch.logdet(covariance[:, [1, 3]][:, :, [1, 3]])
    torch.testing.assert_close(information, (parts - torch.logdet(covariance)) / 2)
    torch.testing.assert_close(mutual_information_of_density(joint, 3, 1), information)  # symmetric
    assert differential_entropy(Normal(torch.zeros(3), torch.ones(3))).shape == (3,)


def test_infinite_where_q_has_no_mass_and_only_there():
    zero, one = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert kl_divergence(Normal(zero, one), Uniform(-3 * one, 3 * one)) == math.inf
    assert density_kl_divergence_definition(Normal(zero, one), Uniform(-3 * one, 3 * one)) == math.inf
    assert distribution_cross_entropy(Normal(zero, one), Exponential(one)) == math.inf
    assert density_kl_divergence_definition(Uniform(zero, one), Uniform(zero, 2 * one)).item() == pytest.approx(
        math.log(2)
    )
    assert density_kl_divergence_definition(Uniform(zero, 2 * one), Uniform(zero, one)) == math.inf


def test_one_point_without_mass_is_nothing_even_if_it_is_a_node():
    nodes = line_quadrature(torch.tensor(LINE, dtype=torch.float64), 80)
    heaviest = nodes.points[(nodes.weights * torch.exp(-nodes.points.square() / 2)).argmax()]
    shifted = Normal(torch.tensor(1.0, dtype=torch.float64), 1.0)
    p = Density(lambda x: Normal(torch.zeros_like(x), 1.0).log_prob(x).exp(), LINE, num_nodes=80)
    q = Density(
        lambda x: torch.where(x == heaviest, 0, shifted.log_prob(x).exp()), LINE, num_nodes=81
    )  # whose nodes do not meet it
    assert q(heaviest) == 0
    assert kl_divergence(p, q).item() == pytest.approx(0.5, abs=1e-8)


def test_tails_that_never_end():
    zero, one = torch.tensor([0.0, 1.0], dtype=torch.float64)
    cauchy, normal = Cauchy(zero, one), Normal(zero, one)
    assert kl_divergence(cauchy, normal) == math.inf
    assert kl_divergence(normal, cauchy) < 1  # the other way round it is finite
    assert kl_divergence(StudentT(2 * one), normal) == math.inf  # its second moment is infinite, if only by a logarithm
    assert kl_divergence(StudentT(2.5 * one), normal) < math.inf
    known = [
        scipy.integrate.quad(
            lambda x: scipy.stats.cauchy.pdf(x) * (scipy.stats.cauchy.logpdf(x) - scipy.stats.norm.logpdf(x)),
            -r,
            r,
            limit=500,
        )[0]
        for r in (10, 100, 1000)
    ]
    assert kl_by_truncation(cauchy, normal, (10, 100, 1000)).tolist() == pytest.approx(known, rel=1e-7)
    # At an edge: -log q = 1/x near 0 has no integral, -log q = -log 2x has one.
    flat = Density(lambda x: 1 + 0 * x, (0, 1))
    mass = scipy.integrate.quad(lambda x: math.exp(-1 / x), 0, 1)[0]
    assert kl_divergence(flat, Density(lambda x: torch.exp(-1 / x) / mass, (0, 1))) == math.inf
    assert kl_divergence(flat, Density(lambda x: 2 * x, (0, 1))).item() == pytest.approx(1 - math.log(2), abs=1e-8)


def test_logarithms_are_used_where_a_density_rounds_to_zero():
    far = Normal(torch.tensor(100.0, dtype=torch.float64), 1.0)
    assert density_kl_divergence_definition(
        Normal(torch.tensor(0.0, dtype=torch.float64), 1.0), far
    ).item() == pytest.approx(5000, rel=1e-7)


def test_mistakes_are_told():
    line, square = Density(lambda x: 1 + 0 * x, (0, 1)), Density(lambda x, y: 1 + 0 * x * y, (0, 1), (0, 1))
    refused = [
        (lambda: kl_divergence(line, square), "got 1 and 2 coordinates"),
        (lambda: mutual_information_of_density(square, 0, 1), "some but not all of the coordinates 0 to 1"),
        (lambda: mutual_information_of_density(line, 0), "some but not all"),
        (lambda: conditional_differential_entropy(square, 2), "got (2,)"),
        (lambda: differential_entropy_definition(Normal(torch.zeros(3), 1.0)), "one by one"),
        (lambda: kl_by_truncation(line, line, (0.5, -1)), "finite radii"),
        (lambda: kl_divergence(line, torch.distributions.Poisson(torch.tensor(2.0))), "continuous distribution"),
        (lambda: differential_entropy(line, base=1), "base above 1"),
    ]
    for call, words in refused:
        with pytest.raises(UserError) as told:
            call()
        assert words in str(told.value)
        assert "\n" not in str(told.value)
