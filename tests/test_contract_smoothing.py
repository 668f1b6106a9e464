"""The contract of kernel pooling and kernel densities: definition and fast form agree in value and gradient, far from
the origin too."""

import math
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.neighbors import KernelDensity as PeerDensity
from torch import Tensor, nn

from quoin.errors import UserError
from quoin.layers import (
    CacheSpec,
    InnerAttention,
    NadarayaWatson,
    every_key,
    nadaraya_watson,
    nadaraya_watson_definition,
    nadaraya_watson_weights,
    nearest_key,
    no_key,
    undefined,
)
from quoin.prob import KernelDensity, kernel_density_definition, line_quadrature
from quoin.tensor import (
    BoxcarKernel,
    EpanechnikovKernel,
    GaussianKernel,
    SmoothingKernel,
    TriangularKernel,
    as_bandwidth,
    scaled_offsets,
    squared_distances,
    squared_distances_definition,
)

KERNELS = [GaussianKernel(), BoxcarKernel(), TriangularKernel(), EpanechnikovKernel()]
PEERS = {
    GaussianKernel: "gaussian",
    BoxcarKernel: "tophat",
    TriangularKernel: "linear",
    EpanechnikovKernel: "epanechnikov",
}
RULES = [nearest_key, every_key, no_key]
each_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=repr)


def near(dtype: torch.dtype) -> dict[str, float]:
    return {"rtol": 2e-4, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-10}


def drawn(seed: int, *shape: int, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def compared(left: Tensor, right: Tensor, inputs: list[Tensor], near: dict[str, float]) -> None:
    torch.testing.assert_close(left, right, **near)
    upstream = drawn(99, *left.shape, dtype=left.dtype)
    gradients = [torch.autograd.grad(each, inputs, upstream, materialize_grads=True) for each in (left, right)]
    torch.testing.assert_close(*gradients, **near)
    assert all(each.isfinite().all() for each in gradients[0])


# ---- pooling ----------------------------------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(
    st.sampled_from(KERNELS),
    st.sampled_from(RULES),
    st.sampled_from([torch.float32, torch.float64]),
    st.lists(st.integers(1, 3), max_size=2),
    st.tuples(st.integers(1, 6), st.integers(1, 7), st.integers(1, 4), st.integers(1, 3)),
    st.booleans(),
    st.booleans(),
    st.integers(0, 10**6),
)
def test_pooling_agrees_with_its_definition(kernel, rule, dtype, batch, sizes, masked, by_coordinate, seed):
    queries, keys, dim, values = sizes
    q, k = drawn(seed, *batch, queries, dim, dtype=dtype), drawn(seed + 1, *batch, keys, dim, dtype=dtype)
    q[..., 0, :] = k[..., 0, :]  # a query in the place of a key, where a cone has its tip
    v = drawn(seed + 2, *batch, keys, values, dtype=dtype)
    h = (0.7 + drawn(seed + 3, dim, dtype=dtype).abs()) if by_coordinate else torch.tensor(0.9, dtype=dtype)
    mask = torch.rand(*batch, queries, keys, generator=torch.Generator().manual_seed(seed)) < 0.6 if masked else None
    inputs = [each.requires_grad_() for each in (q, k, v, h)]
    square = squared_distances_definition(q / h, k / h).detach()
    # On the edge of a window a rounding decides; near it the weights are small, and gradients divide roundings by them.
    edge = 1e-2 if dtype == torch.float32 else 1e-4
    if not isinstance(kernel, GaussianKernel) and bool(((square - 1).abs() < edge).any()):
        return
    found = nadaraya_watson_definition(q, k, v, kernel, h, fallback=rule, mask=mask)
    compared(nadaraya_watson(q, k, v, kernel, h, fallback=rule, mask=mask), found.output, inputs, near(dtype))
    weights = nadaraya_watson_weights(q, k, kernel, h, fallback=rule, mask=mask)
    torch.testing.assert_close(weights, found.weights, **near(dtype))
    sums = weights.sum(dim=-1)
    assert bool(((sums - 1).abs() < 1e-5).logical_or(sums == 0).all())
    if mask is not None:
        assert not bool(weights[~mask].any())
        assert not bool(found.output[~mask.any(dim=-1)].any())


@each_kernel
def test_pieces_change_nothing(kernel, monkeypatch):
    file = sys.modules["quoin.layers.attention.nadaraya_watson"]
    q, k, v = drawn(0, 2, 11, 3), drawn(1, 2, 8, 3), drawn(2, 2, 8, 2)
    h, mask = torch.tensor(1.3, dtype=torch.float64), drawn(3, 1, 11, 8) > -1
    inputs = [each.requires_grad_() for each in (q, k, v, h)]
    whole = nadaraya_watson(q, k, v, kernel, h, mask=mask)
    monkeypatch.setattr(file, "rows_per_block", lambda *numbers: 3)
    compared(nadaraya_watson(q, k, v, kernel, h, mask=mask), whole, inputs, near(torch.float64))


@pytest.mark.parametrize("offset", [0.0, 1e4, 1e6])
@pytest.mark.parametrize("width", [0.003, 0.3, 20.0])
@pytest.mark.parametrize("dim", [1, 3])
def test_a_gaussian_is_accurate_in_float32_far_from_the_origin_and_at_narrow_widths(offset, width, dim):
    """The exact answer for the very float32 points, in float64: only the answer's own rounding may be off."""
    q, k, v = (drawn(seed, 400, dim, dtype=torch.float32) + move for seed, move in ((0, offset), (1, offset), (2, 0.0)))
    exact = nadaraya_watson_weights(q.double(), k.double(), GaussianKernel(), width) @ v.double()
    torch.testing.assert_close(nadaraya_watson(q, k, v, GaussianKernel(), width).double(), exact, rtol=0, atol=5e-5)


def test_the_expanded_square_alone_would_not_be():
    """Why float32 is left: q k - k²/2 in float32 loses what it is asked for at narrow widths."""
    q, k, v = (drawn(seed, 400, 1, dtype=torch.float32) for seed in range(3))
    exact = nadaraya_watson_weights(q.double(), k.double(), GaussianKernel(), 0.003) @ v.double()
    scores = (q / 0.003) @ (k / 0.003).mT - (k / 0.003).square().sum(dim=-1) / 2
    assert float((scores.softmax(dim=-1) @ v - exact).abs().max()) > 1e-3


def test_far_queries_see_the_nearest_key_and_not_nothing():
    key, value = torch.tensor([[0.0], [1.0]]), torch.tensor([[3.0], [7.0]])
    far = torch.tensor([[1e4], [-1e4]])
    assert nadaraya_watson(far, key, value, GaussianKernel(), 1.0, fallback=undefined).tolist() == [[7.0], [3.0]]
    for kernel in KERNELS[1:]:
        assert nadaraya_watson(far, key, value, kernel, 1.0).tolist() == [[7.0], [3.0]]
        assert nadaraya_watson(far, key, value, kernel, 1.0, fallback=every_key).tolist() == [[5.0], [5.0]]
        assert nadaraya_watson(far, key, value, kernel, 1.0, fallback=no_key).tolist() == [[0.0], [0.0]]
        assert nadaraya_watson(far, key, value, kernel, 1.0, fallback=undefined).isnan().all()


def test_the_edge_belongs_to_the_boxcar():
    key, value = (
        torch.arange(10.0, dtype=torch.float64).unsqueeze(-1),
        torch.arange(10.0, dtype=torch.float64).unsqueeze(-1),
    )
    for width in (1.0, 3.0):
        weights = nadaraya_watson_weights(key, key, BoxcarKernel(), width)
        apart = (key - key.mT).abs() <= width
        torch.testing.assert_close(weights, apart / apart.sum(dim=-1, keepdim=True).double())
    assert nadaraya_watson(key[:1], key, value, BoxcarKernel(), 3.0).item() == 1.5


def test_by_hand():
    """Keys at 0, 1/2 and 2 from a query at 0: K is 1, K(1/2), 0."""
    key, value = torch.tensor([[0.0], [0.5], [2.0]]), torch.tensor([[0.0], [1.0], [100.0]])
    for kernel, half in ((BoxcarKernel(), 1.0), (TriangularKernel(), 0.5), (EpanechnikovKernel(), 0.75)):
        assert nadaraya_watson(torch.zeros(1, 1), key, value, kernel, 1.0).item() == pytest.approx(half / (1 + half))


def test_one_width_for_each_coordinate_is_a_change_of_units():
    q, k, v, h = drawn(0, 5, 3), drawn(1, 9, 3), drawn(2, 9, 1), torch.tensor([0.5, 2.0, 9.0], dtype=torch.float64)
    for kernel in KERNELS:
        torch.testing.assert_close(nadaraya_watson(q, k, v, kernel, h), nadaraya_watson(q / h, k / h, v, kernel, 1.0))
    torch.testing.assert_close(scaled_offsets(q, k, h)[2, 4], (q[2] - k[4]) / h)
    torch.testing.assert_close(squared_distances(q, k, h), squared_distances_definition(q / h, k / h))


@each_kernel
def test_it_is_an_attention(kernel):
    width = nn.Parameter(torch.tensor(1.5))
    attend = NadarayaWatson(kernel, width)
    assert isinstance(attend, InnerAttention)
    assert list(attend.parameters()) == [width]
    query, key, value = drawn(0, 2, 4, 6, 3).float(), drawn(1, 2, 2, 6, 3).float(), drawn(2, 2, 2, 6, 5).float()
    whole = attend(query, key, value, causal=True)
    weights = attend.weights(query, key, causal=True)
    assert not weights.triu(1).any()
    torch.testing.assert_close(weights @ value.repeat_interleave(2, dim=1), whole, rtol=1e-4, atol=1e-5)
    state, outputs = attend.init_cache(CacheSpec(2, 2, 3, 5, 6, torch.float32, torch.device("cpu"))), []
    for now in (slice(0, 1), slice(1, 4), slice(4, 6)):
        output, state = attend.decode_step(state, query[:, :, now], key[:, :, now], value[:, :, now])
        outputs.append(output)
    torch.testing.assert_close(torch.cat(outputs, dim=2), whole, rtol=1e-4, atol=1e-5)
    padded = (
        torch.cat([key, torch.full_like(key, torch.nan)], dim=2),
        torch.cat([value, torch.full_like(value, torch.nan)], dim=2),
    )
    mask = torch.arange(12) < 6
    torch.testing.assert_close(attend(query, *padded, mask=mask), attend(query, key, value), rtol=1e-4, atol=1e-5)


def test_a_width_learns():
    """Three neighbours say little of each other: leaving each out, the error falls as the window widens."""
    log_width = torch.tensor(-1.0, requires_grad=True)
    x, y = torch.linspace(0, 1, 30).unsqueeze(-1), drawn(0, 30, 1).float()
    error = (
        (nadaraya_watson(x, x, y, GaussianKernel(), log_width.exp() / 30, mask=~torch.eye(30, dtype=torch.bool)) - y)
        .square()
        .mean()
    )
    error.backward()
    assert log_width.grad is not None
    assert float(log_width.grad) < 0


def test_half_precision_is_worked_out_in_more():
    q, k, v = (drawn(seed, 6, 2).bfloat16() for seed in range(3))
    for kernel in KERNELS:
        found = nadaraya_watson(q, k, v, kernel, 1.0)
        assert found.dtype == torch.bfloat16
        torch.testing.assert_close(
            found.double(), nadaraya_watson(q.double(), k.double(), v.double(), kernel, 1.0), rtol=0.01, atol=0.01
        )


@pytest.mark.parametrize(
    "width", [0.0, -1.0, math.nan, math.inf, torch.ones(2), torch.ones(1, 3), torch.tensor([1.0, -1.0, 1.0])]
)
def test_wrong_widths(width):
    with pytest.raises(UserError, match=r"expected (a|one) bandwidth"):
        nadaraya_watson(torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(4, 1), GaussianKernel(), width)
    with pytest.raises(UserError, match=r"expected (a|one) bandwidth"):
        KernelDensity(torch.zeros(4, 3), GaussianKernel(), width)


def test_wrong_inputs():
    q, k, v, kernel = torch.zeros(2, 3), torch.zeros(4, 3), torch.zeros(4, 1), BoxcarKernel()
    nan = torch.tensor([[0.0, torch.nan, 0.0]])
    for arguments, words in (
        ((torch.zeros(2, 5), k, v), "axis d of key"),
        ((q, k, torch.zeros(3, 1)), "axis m of value"),
        ((q, k[:0], v[:0]), "at least one key"),
        ((nan, k, v), "finite entries of query"),
        ((q, nan, v[:1]), "finite entries of key"),
        ((q, k, torch.full((4, 1), torch.inf)), "finite entries of value"),
        ((q.long(), k, v), "float dtype"),
        ((q, k.double(), v), "one dtype"),
    ):
        with pytest.raises(UserError, match=words):
            nadaraya_watson(*arguments, kernel, 1.0)
    with pytest.raises(UserError, match="boolean mask"):
        nadaraya_watson(q, k, v, kernel, 1.0, mask=torch.ones(2, 4))
    with pytest.raises(UserError, match="broadcasts to"):
        nadaraya_watson(q, k, v, kernel, 1.0, mask=torch.ones(2, 5, dtype=torch.bool))
    assert nadaraya_watson(q[:0], k, v, kernel, 1.0).shape == (0, 1)
    assert as_bandwidth(2, q).shape == ()


# ---- kernels and densities --------------------------------------------------------------------------------------


@each_kernel
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_a_kernel_over_its_mass_is_a_density(kernel: SmoothingKernel, dim):
    """In polar coordinates, with S_d = 2 π^(d/2) / Γ(d/2) the surface of the unit sphere."""
    edges = torch.tensor([0.0, 0.25, 1.0, 4.0, 12.0], dtype=torch.float64)
    r, weights = line_quadrature(edges if kernel.radius == math.inf else edges[:3])
    sphere = 2 * math.pi ** (dim / 2) / math.gamma(dim / 2)
    u = torch.cat([r.unsqueeze(-1), r.new_zeros(len(r), dim - 1)], dim=-1)
    assert float((weights * sphere * r ** (dim - 1) * kernel.density(u)).sum()) == pytest.approx(1, abs=1e-10)
    assert kernel(torch.zeros(dim)).item() == 1
    assert kernel.radius == math.inf or not kernel(1.001 * u[r > 1 - 1e-9]).any()


@each_kernel
@pytest.mark.parametrize("dim", [1, 2, 4])
def test_densities_are_scikit_learns(kernel, dim):
    points, x = drawn(0, 40, dim), 1.5 * drawn(1, 30, dim)
    peer = PeerDensity(kernel=PEERS[type(kernel)], bandwidth=0.8).fit(points.numpy()).score_samples(x.numpy())
    ours = KernelDensity(points, kernel, 0.8).log_prob(x)
    np.testing.assert_allclose(ours.exp().numpy(), np.exp(peer), atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(KERNELS),
    st.sampled_from([torch.float32, torch.float64]),
    st.tuples(st.integers(1, 6), st.integers(1, 7), st.integers(1, 3)),
    st.integers(0, 10**6),
)
def test_a_log_density_agrees_with_its_definition(kernel, dtype, sizes, seed):
    places, count, dim = sizes
    x, points = drawn(seed, places, dim, dtype=dtype), drawn(seed + 1, count, dim, dtype=dtype)
    h = 0.7 + drawn(seed + 2, dim, dtype=dtype).abs()
    if bool(((squared_distances_definition(x / h, points / h) - 1).abs() < 1e-2).any()):
        return  # near the edge of a window the logarithm has a slope without bound
    inputs = [each.requires_grad_() for each in (x, points, h)]
    expected = kernel_density_definition(x, points, kernel, h)
    found = KernelDensity(points, kernel, h).log_prob(x).exp()
    torch.testing.assert_close(found, expected, **near(dtype))
    gradients = [torch.autograd.grad(each.sum(), inputs, materialize_grads=True) for each in (found, expected)]
    torch.testing.assert_close(*gradients, **near(dtype))
    assert all(each.isfinite().all() for each in gradients[0])


def test_no_log_density_vanishes_and_none_is_invented():
    points = torch.zeros(1, 2)
    far = torch.tensor([[300.0, 400.0]])
    assert KernelDensity(points, GaussianKernel(), 1.0).log_prob(far).item() == pytest.approx(
        -125_000 - math.log(2 * math.pi)
    )
    assert KernelDensity(points, BoxcarKernel(), 1.0).log_prob(far).item() == -math.inf
    law = KernelDensity(torch.zeros(3, 2), TriangularKernel(), 1.0)
    assert law.log_prob(torch.zeros(2, 5, 2)).shape == (2, 5)
    with pytest.raises(UserError, match="axis d of points"):
        law.log_prob(torch.zeros(4, 3))
    with pytest.raises(UserError, match="finite entries"):
        law.log_prob(torch.full((4, 2), torch.nan))
    with pytest.raises(UserError, match="at least one point"):
        KernelDensity(torch.zeros(0, 2), GaussianKernel(), 1.0)


@each_kernel
@pytest.mark.parametrize("dim", [1, 3])
def test_draws_have_the_law(kernel, dim):
    """The variance of the draws is that of the points plus that of a bump, and every draw lies where the density is
    positive."""
    mean_square = {
        GaussianKernel: dim,
        BoxcarKernel: dim / (dim + 2),  # ‖u‖² ~ Beta(d/2, 1)
        TriangularKernel: dim * (dim + 1) / ((dim + 2) * (dim + 3)),  # ‖u‖ ~ Beta(d, 2)
        EpanechnikovKernel: dim / (dim + 4),  # ‖u‖² ~ Beta(d/2, 2)
    }[type(kernel)]
    points, h = drawn(0, 5, dim), torch.linspace(0.5, 2, dim, dtype=torch.float64)
    law, count = KernelDensity(points, kernel, h), 40_000
    draws = law.sample((200, 200), generator=torch.Generator().manual_seed(1))
    assert draws.shape == (200, 200, dim)
    assert law.log_prob(draws).isfinite().all()
    expected = (points - points.mean(dim=0)).square().mean(dim=0) + h**2 * mean_square / dim
    spread = (draws.flatten(0, 1) - points.mean(dim=0)).square()
    assert bool(((spread.mean(dim=0) - expected).abs() < 5.5 * spread.std(dim=0) / math.sqrt(count)).all())


@each_kernel
@pytest.mark.parametrize("width", [1e-3, torch.tensor([1e-3, 2e-3], dtype=torch.float64)], ids=["one width", "two"])
def test_of_equally_near_keys_none_is_preferred(kernel, width):
    """Duplicates, and keys on both sides of a query: their mean value, whatever the order of rows, which is a narrow
    Gaussian's limit."""
    grid = torch.tensor([[0.0, 0.0], [0.0, 0.0], [2.0, 0.0], [2.0, 0.0], [2.0, 0.0], [5.0, 5.0]], dtype=torch.float64)
    value = torch.tensor([[1.0], [2.0], [10.0], [20.0], [60.0], [7.0]], dtype=torch.float64)
    query = torch.tensor([[-0.5, 0.0], [1.0, 0.0], [2.5, 0.0], [9.0, 9.0]], dtype=torch.float64)
    expected = torch.tensor([[1.5], [(1 + 2 + 10 + 20 + 60) / 5], [30.0], [7.0]], dtype=torch.float64)
    for seed in range(6):
        order = torch.randperm(6, generator=torch.Generator().manual_seed(seed))
        for found in (
            nadaraya_watson(query, grid[order], value[order], kernel, width),
            nadaraya_watson_definition(query, grid[order], value[order], kernel, width).output,
            nadaraya_watson_weights(query, grid[order], kernel, width) @ value[order],
        ):
            torch.testing.assert_close(found, expected)


def test_a_hidden_key_is_no_nearest_one():
    square = torch.tensor([[4.0, math.inf, 4.0, 9.0], [math.inf, 1.0, math.inf, math.inf]])
    assert nearest_key(square).tolist() == [[1, 0, 1, 0], [0, 1, 0, 0]]
