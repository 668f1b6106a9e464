"""Whatever roots, decomposes, inverts or solves is tried at the identity, at σ² I, at a matrix of rank one and at zero.

Values hold no NaN. Gradients are finite, and along every curve of matrices that keeps the rank they are the derivative,
by central differences; or the call is refused with a UserError, and here it says where. The members are read off the
source (decompositions.py).
"""

import math

import pytest
import torch

from decompositions import public_decompositions
from quoin import models, prob, tensor
from quoin.errors import UserError

double = lambda x: torch.tensor(x, dtype=torch.float64)  # noqa: E731
EYE = torch.eye(3, dtype=torch.float64)
U, H = double([1.0, 2.0, -1.0]), double([[0.3, -0.2, 0.5], [-0.2, 0.1, 0.4], [0.5, 0.4, -0.6]])
CURVES = {  # matrices of one rank through the matrix at t = 0
    "identity": lambda t: EYE + t * H,
    "multiple": lambda t: 4 * EYE + t * H,
    "rank one": lambda t: torch.outer(U + t * H[0], U + t * H[0]),
    "zero": lambda t: 0 * t * EYE,
}
SINGULAR = {"rank one", "zero"}
REPEATED = set(CURVES)
MEAN, NOISE = double([0.5, -1.0, 0.3]), double([0.3, -0.2, 1.1])
ROWS = torch.randn(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
TARGETS = torch.randn(6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
CHAIN = torch.softmax(ROWS[:3], -1)


def generator():
    return torch.Generator().manual_seed(0)


def normal(covariance):
    return prob.MultivariateNormal(MEAN, covariance)


def on(covariance):
    """A point that the distribution N(MEAN, Σ) can give, whatever Σ is."""
    return MEAN + covariance @ NOISE


def law(matrix):
    """The matrix as a chain's: rows of a distribution, mixed with it."""
    return 0.5 * CHAIN + 0.5 * torch.softmax(matrix, -1)


# name, with a word where one function is tried in several ways: the function of the matrix, and the curves where it is
# refused
CASES = {
    "tensor.det": (tensor.det, ()),
    "tensor.inverse": (tensor.inverse, SINGULAR),
    "tensor.project": (lambda A: tensor.project(ROWS, A), ()),
    "tensor.eigendecomposition values": (lambda A: tensor.eigendecomposition(A).values.real.sum(), ()),
    "tensor.eigendecomposition vectors": (lambda A: tensor.eigendecomposition(A).vectors.real, REPEATED),
    "tensor.symmetric_eigendecomposition values": (lambda A: tensor.symmetric_eigendecomposition(A).values.sum(), ()),
    "tensor.symmetric_eigendecomposition vectors": (lambda A: tensor.symmetric_eigendecomposition(A).vectors, REPEATED),
    "prob.normal_log_prob_definition": (lambda A: prob.normal_log_prob_definition(ROWS, MEAN, A), SINGULAR),
    "prob.MultivariateNormal log_prob": (lambda A: normal(A).log_prob(on(A)), ()),
    "prob.MultivariateNormal sample": (lambda A: (normal(A).sample((4,), generator=generator()) - MEAN).square(), ()),
    "prob.TriangularNormal": (lambda A: prob.TriangularNormal(MEAN, A.tril()).log_prob(ROWS), {"zero"}),
    "prob.FullNormals": (lambda A: prob.FullNormals(MEAN[None], A[None]).log_prob(ROWS[:, None]), SINGULAR),
    "prob.TiedNormals": (lambda A: prob.TiedNormals(MEAN[None], A).log_prob(ROWS[:, None]), SINGULAR),
    "prob.GaussianEmission": (lambda A: prob.GaussianEmission(MEAN[None], A[None]).log_prob(ROWS), SINGULAR),
    "prob.condition_normal_definition": (
        lambda A: torch.cat(flat(prob.condition_normal_definition(MEAN, A, [1, 2], on(A)[1:]))),
        (),
    ),
    "prob.condition_normal": (lambda A: torch.cat(flat(prob.condition_normal(MEAN, A, [1, 2], on(A)[1:]))), ()),
    "prob.reparameterize_definition": (lambda A: prob.reparameterize_definition(MEAN, A, NOISE), ()),
    "prob.squared_frechet_definition": (
        lambda A: prob.squared_frechet_definition(MEAN, A, NOISE, A.detach().clone()),
        (),
    ),
    "prob.squared_frechet_definition from I": (lambda A: prob.squared_frechet_definition(MEAN, EYE, NOISE, A), ()),
    "prob.squared_frechet_definition to I": (lambda A: prob.squared_frechet_definition(MEAN, A, NOISE, EYE), ()),
    "prob.squared_frechet_of_samples": (lambda A: prob.squared_frechet_of_samples(ROWS @ A, ROWS), ()),
    "prob.squared_frechet_of_samples both": (lambda A: prob.squared_frechet_of_samples(ROWS[:4] @ A, ROWS @ A), ()),
    "prob.kl_normal": (lambda A: prob.kl_normal(on(A), A, MEAN, 2 * A), ()),
    "prob.kl_normal_definition": (lambda A: prob.kl_normal_definition(on(A), A, MEAN, 2 * A), ()),
    "prob.wick": (lambda A: prob.wick(A, [0, 0, 1, 2]), ()),
    "prob.normal_moment": (lambda A: prob.normal_moment(MEAN, A, [0, 0, 1, 2]), ()),
    "prob.stationary_distribution": (lambda A: prob.stationary_distribution(law(A)), ()),
    "prob.hitting_probability": (lambda A: prob.hitting_probability(law(A), torch.tensor([True, False, False])), ()),
    "prob.hitting_time": (lambda A: prob.hitting_time(law(A), torch.tensor([True, False, False])), ()),
    "prob.GaussianFlow": (lambda A: prob.GaussianFlow(normal(A))(ROWS, torch.full((6,), 0.3).double()), ()),
    "prob.GaussianDenoiser": (
        lambda A: prob.GaussianDenoiser(normal(A), prob.cosine_beta_schedule(10))(ROWS, torch.full((6,), 4)).clean,
        (),
    ),
    "models.GaussianDiscriminant": (
        lambda A: models.GaussianDiscriminant(double([1.0]), MEAN[None], A[None]).log_density(ROWS),
        SINGULAR,
    ),
    "models.ppca_log_evidence_definition": (
        lambda A: models.ppca_log_evidence_definition(ROWS, A[:, :2], MEAN, double(0.3)),
        (),
    ),
    "models.ppca_posterior_definition": (
        lambda A: torch.cat(flat(models.ppca_posterior_definition(ROWS, A[:, :2], MEAN, double(0.3)))),
        (),
    ),
    "models.best_affine_predictor": (
        lambda A: models.best_affine_predictor(MEAN, double(0.2), A, A @ NOISE).weight,
        (),
    ),
    "models.least_squares": (lambda A: models.least_squares(ROWS @ A, TARGETS).weight, ()),
    "models.normal_equations": (lambda A: models.normal_equations(ROWS @ A, TARGETS).weight, SINGULAR),
    "models.least_squares_by_qr": (lambda A: models.least_squares_by_qr(ROWS @ A, TARGETS).weight, SINGULAR),
    "models.ridge": (lambda A: models.ridge(ROWS @ A, TARGETS, l2=0.1).weight, ()),
    "models.kernel_ridge": (
        lambda A: models.kernel_ridge(lambda x, y: ((x * y).sum(-1) + 1) ** 2, ROWS @ A, TARGETS, 0.1).weights,
        (),
    ),
}
REASONS = {
    "layers.orthogonal_random_matrix": "draws its own matrices, normal and so of full rank, and needs no gradient",
    "tensor.matrix_rank": "a whole number",
    "prob.check_regular": "a check: it refuses singular matrices, and gives nothing back",
    "tensor.cp_rank": "whole numbers; its factors are those of a detached tensor",
    "tensor.cp_decompose": "a search, its factors those of a detached tensor",
    "tensor.fit_complexity": "takes counts of steps, no matrix",
    "models.PPCA": "a module with parameters of its own: its fast forms are held to the definitions by the "
    "contract suite",
}


def flat(parts):
    return [part.flatten() for part in parts]


def weighed(value):
    """One number of a result, each entry with its own weight; what is infinite does not count."""
    weights = torch.linspace(1, 2, value.numel(), dtype=torch.float64).reshape(value.shape)
    return torch.where(value.isfinite(), value, 0).mul(weights).sum()


def test_every_public_decomposition_is_listed():
    found = public_decompositions()
    listed = {name.split()[0] for name in CASES} | set(REASONS)
    assert found == listed, f"not listed: {found - listed}; gone: {listed - found}"


@pytest.mark.parametrize("curve", CURVES)
@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_where_matrices_degenerate(name, curve):
    function, refused = CASES[name]
    matrix = CURVES[curve](double(0.0)).detach().requires_grad_()
    if curve in refused:
        with pytest.raises(UserError):
            torch.autograd.grad(weighed(function(matrix)), matrix)
        return
    value = function(matrix)
    assert not value.isnan().any()
    (gradient,) = torch.autograd.grad(weighed(value), matrix)
    assert gradient.isfinite().all()
    step = 1e-5
    derivative = (weighed(function(CURVES[curve](double(step)))) - weighed(function(CURVES[curve](double(-step))))) / (
        2 * step
    )
    along = (CURVES[curve](double(step)) - CURVES[curve](double(-step))) / (2 * step)
    # these move, or hold, what stands on the other side
    if "both" not in name and name != "prob.squared_frechet_definition":
        assert float((gradient * along).sum()) == pytest.approx(float(derivative), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("curve", CURVES)
def test_the_frechet_distance_to_itself_is_least_there(curve):
    """d² >= 0 is 0 at equal distributions, so its gradient in one of them is 0 along every curve that keeps the
    rank."""
    at = CURVES[curve](double(0.0)).detach().requires_grad_()
    value = prob.squared_frechet_definition(MEAN, at, MEAN, at.detach().clone())
    assert float(value.detach()) == pytest.approx(0, abs=1e-9)
    (gradient,) = torch.autograd.grad(value, at)
    along = (CURVES[curve](double(1e-5)) - CURVES[curve](double(-1e-5))) / 2e-5
    assert float((gradient * along).sum()) == pytest.approx(0, abs=1e-7)


def test_the_root_satisfies_sylvesters_equation_to_all_orders():
    from quoin.prob.matrix_root import symmetric_root

    for matrix in (EYE, 4 * EYE, EYE + H @ H):
        at = matrix.clone().requires_grad_()
        assert torch.autograd.gradcheck(symmetric_root, at)
        assert torch.autograd.gradgradcheck(symmetric_root, at)
        root = symmetric_root(matrix)
        torch.testing.assert_close(root @ root, matrix)
        change = torch.autograd.functional.jvp(symmetric_root, matrix, H)[1]
        torch.testing.assert_close(root @ change + change @ root, H)


def test_two_hundred_singular_covariances_are_rooted():
    for seed in range(200):
        draws = torch.randn(4, 1 + seed % 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        covariance, noise = (
            draws @ draws.mT,
            torch.randn(4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64),
        )
        left, sizes, _ = torch.linalg.svd(draws, full_matrices=False)
        expected = (left * sizes) @ left.mT @ noise  # Σ = U s² Uᵀ, so Σ^(1/2) = U s Uᵀ
        found = prob.reparameterize_definition(torch.zeros(4).double(), covariance, noise)
        torch.testing.assert_close(found, expected, rtol=1e-7, atol=1e-7)


def test_small_variances_are_kept_by_the_root():
    small = torch.diag(torch.tensor([1.0, 1e-12]))  # float32: far below a rounding of the largest, and yet a variance
    found = prob.reparameterize_definition(torch.zeros(2), small, torch.ones(2))
    assert found.tolist() == pytest.approx([1.0, 1e-6])
    at = small.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(prob.reparameterize_definition(torch.zeros(2), at, torch.ones(2))[1], at)
    assert float(gradient[1, 1]) == pytest.approx(0.5 / 1e-6, rel=1e-4)


def test_what_is_no_covariance_has_no_root():
    wrong = torch.diag(double([1.0, -1.0]))
    for call in (
        lambda: prob.reparameterize_definition(MEAN[:2], wrong, NOISE[:2]),
        lambda: prob.squared_frechet_definition(MEAN[:2], wrong, MEAN[:2], EYE[:2, :2]),
        lambda: prob.squared_frechet_definition(MEAN[:2], EYE[:2, :2], MEAN[:2], wrong),
    ):
        with pytest.raises(UserError, match="positive semi-definite"):
            call()
    assert math.isfinite(float(prob.reparameterize_definition(MEAN, EYE, NOISE).sum()))
