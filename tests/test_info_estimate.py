"""Estimates from samples: against known distributions within their stated errors, against SciPy and scikit-learn, and
what is refused."""

import math

import pytest
import scipy.stats
import torch
from sklearn.feature_selection import mutual_info_regression
from torch.distributions import Multinomial

from quoin.errors import UserError
from quoin.info import (
    entropy,
    knn_entropy,
    knn_kl_divergence,
    ksg_mutual_information,
    miller_madow_entropy,
    miller_madow_mutual_information,
    mutual_information,
    plug_in_entropy,
    plug_in_mutual_information,
)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def draws(*shape, seed=0):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64)


def counted(law, num_draws, repeats, seed=0):
    """Tables of counts; torch's Multinomial draws from the global generator alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Multinomial(num_draws, law.flatten()).sample((repeats,)).reshape(repeats, *law.shape)


# ---- counts ----------------------------------------------------------------------------------------------------------


def test_plug_in_is_scipys_entropy():
    counts = torch.randint(0, 9, (20, 7), generator=generator())
    ours = plug_in_entropy(counts + 1, base=2)
    assert ours.tolist() == pytest.approx(scipy.stats.entropy((counts + 1).numpy(), base=2, axis=1).tolist())
    assert plug_in_entropy(torch.tensor([5, 0, 0])) == 0


def test_plug_in_information_is_that_of_the_shares():
    counts = torch.randint(0, 9, (20, 3, 4), generator=generator()).double()
    torch.testing.assert_close(
        plug_in_mutual_information(counts), mutual_information(counts / counts.sum(dim=(1, 2), keepdim=True))
    )


def test_the_correction_takes_the_first_order_of_the_bias_away():
    """E H(p^) - H = -(cells - 1) / 2N + O(1/N²): over 4000 tables the plug-in shows it, and the corrected one shows
    none of it."""
    law = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    counts = counted(law, 100, 4000)
    plain, better = plug_in_entropy(counts) - entropy(law), miller_madow_entropy(counts)
    noise = 5 * float(plain.std()) / math.sqrt(4000)
    assert float(plain.mean()) == pytest.approx(-3 / 200, abs=noise + 1e-3)
    assert float(better.output.mean()) == pytest.approx(float(entropy(law)), abs=noise + 1e-3)
    assert float(better.standard_error.mean()) == pytest.approx(float(better.output.std()), rel=0.1)


@pytest.mark.parametrize("dependence", [0.0, 0.15])
def test_information_from_counts(dependence):
    joint = torch.tensor([0.4, 0.6], dtype=torch.float64)[:, None] * torch.tensor([0.2, 0.3, 0.5], dtype=torch.float64)
    joint = joint + dependence * torch.tensor([[1.0, 0.0, -1.0], [-1.0, 0.0, 1.0]], dtype=torch.float64) / 2
    counts = counted(joint, 200, 4000, seed=1)
    plain, better = plug_in_mutual_information(counts), miller_madow_mutual_information(counts)
    known, noise = float(mutual_information(joint)), 5 * float(plain.std()) / math.sqrt(4000)
    assert float(plain.mean()) == pytest.approx(known + 2 / 400, abs=noise + 1e-3)  # (2 - 1)(3 - 1) / 2N too high
    assert float(better.output.mean()) == pytest.approx(known, abs=noise + 1e-3)
    assert float(better.standard_error.mean()) == pytest.approx(
        float(better.output.std()), rel=0.5 if dependence == 0 else 0.15
    )


# ---- neighbours ------------------------------------------------------------------------------------------------------

LAWS = {
    "normal": (lambda n, seed: draws(n, 1, seed=seed), math.log(2 * math.pi * math.e) / 2),
    "normal in the plane": (
        lambda n, seed: 3 * draws(n, 2, seed=seed),
        math.log(2 * math.pi * math.e) + 2 * math.log(3),
    ),
    "uniform": (lambda n, seed: torch.rand(n, 1, generator=generator(seed), dtype=torch.float64) / 2, -math.log(2)),
    "exponential": (lambda n, seed: -torch.rand(n, 1, generator=generator(seed), dtype=torch.float64).log(), 1.0),
}


@pytest.mark.parametrize("name", LAWS)
def test_entropy_from_neighbours(name):
    draw, known = LAWS[name]
    found = [knn_entropy(draw(600, seed)) for seed in range(8)]
    outputs, errors = (torch.stack(each) for each in zip(*found))
    assert abs(float(outputs.mean()) - known) <= 6 * float(errors.mean()) / math.sqrt(8) + 0.02
    assert 0.5 <= float(errors.mean() / outputs.std()) <= 2.5
    sample = draw(600, 0)
    if sample.shape[1] == 1:  # another estimate, from the gaps between ordered values
        assert float(found[0].output) == pytest.approx(scipy.stats.differential_entropy(sample[:, 0].numpy()), abs=0.2)


def test_entropy_moves_with_the_unit_and_not_with_the_order():
    sample = draws(300, 2)
    ours = knn_entropy(sample)
    torch.testing.assert_close(knn_entropy(2 * sample + 5).output, ours.output + 2 * math.log(2))
    torch.testing.assert_close(knn_entropy(sample.flip(0)).output, ours.output)
    torch.testing.assert_close(knn_entropy(sample, base=2).output, ours.output / math.log(2))
    torch.testing.assert_close(knn_entropy(sample, base=2).standard_error, ours.standard_error / math.log(2))


def test_kozachenko_and_leonenko_by_hand():
    """Three points 0, 1, 3 and k = 1: nearest distances 1, 1, 2; ψ(3) - ψ(1) = 3/2, and V_1 = 2."""
    found = knn_entropy(torch.tensor([[0.0], [1.0], [3.0]], dtype=torch.float64), k=1)
    assert float(found.output) == pytest.approx(1.5 + math.log(2) + math.log(2) / 3)
    assert math.isnan(found.standard_error)  # three rows make no groups


def test_kl_by_hand():
    """0, 1 and 0.5, 4, 5 with k = 1: ν = ½, ½ and ρ = 1, 1, so (1/2)(2 log ½) + log(3 / 1)."""
    first, second = torch.tensor([[0.0], [1.0]]), torch.tensor([[0.5], [4.0], [5.0]])
    assert float(knn_kl_divergence(first, second, k=1).output) == pytest.approx(math.log(1.5))


def test_kraskov_by_hand():
    """x = 0, 1, 3 and y = 0, 2, 3: ρ = 2, 2, 2 in the largest coordinate; strictly nearer are 1, 1, 0 others in x and
    0, 1, 1 in y."""
    x, y = torch.tensor([[0.0], [1.0], [3.0]]), torch.tensor([[0.0], [2.0], [3.0]])
    psi = {1: -0.5772156649, 2: 0.4227843351, 3: 0.9227843351}
    known = psi[1] + psi[3] - (2 * psi[2] + psi[1] + psi[1] + 2 * psi[2]) / 3
    assert float(ksg_mutual_information(x, y, k=1).output) == pytest.approx(known, abs=1e-6)


@pytest.mark.parametrize(("shift", "scale"), [(0.0, 1.0), (1.0, 1.0), (0.0, 2.0)])
def test_kl_from_neighbours(shift, scale):
    known = math.log(scale) + (1 + shift**2) / (2 * scale**2) - 0.5  # N(0, 1) against N(shift, scale²)
    found = [knn_kl_divergence(draws(500, 1, seed=s), shift + scale * draws(600, 1, seed=100 + s)) for s in range(8)]
    outputs, errors = (torch.stack(each) for each in zip(*found))
    assert abs(float(outputs.mean()) - known) <= 6 * float(errors.mean()) / math.sqrt(8) + 0.04
    assert 0.4 <= float(errors.mean() / outputs.std()) <= 2.5


@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9])
def test_information_from_neighbours(correlation):
    x = [draws(500, 2, seed=s) for s in range(8)]
    pairs = [(each[:, :1], correlation * each[:, :1] + math.sqrt(1 - correlation**2) * each[:, 1:]) for each in x]
    found = [ksg_mutual_information(*pair) for pair in pairs]
    outputs, errors = (torch.stack(each) for each in zip(*found))
    known = -math.log(1 - correlation**2) / 2
    assert abs(float(outputs.mean()) - known) <= 6 * float(errors.mean()) / math.sqrt(8) + 0.02
    assert 0.4 <= float(errors.mean() / outputs.std()) <= 2.5
    left, right = pairs[0]
    theirs = mutual_info_regression(left.numpy(), right[:, 0].numpy(), n_neighbors=3, random_state=0)[0]
    assert max(float(found[0].output), 0) == pytest.approx(theirs, abs=0.02)  # the same estimate, after noise of 1e-10
    torch.testing.assert_close(ksg_mutual_information(right, left).output, found[0].output)


def test_mistakes_are_told():
    x = draws(20, 1)
    refused = [
        (lambda: miller_madow_entropy(torch.tensor([0.5, 0.5])), "whole and not negative"),
        (lambda: miller_madow_entropy(torch.tensor([0, 0])), "at least one outcome"),
        (lambda: plug_in_entropy(torch.tensor([-1, 2])), "not negative"),
        (lambda: plug_in_entropy(torch.tensor([math.nan, 2])), "whole"),
        (lambda: miller_madow_mutual_information(torch.tensor([1, 2])), "last 2 axes"),
        (lambda: knn_entropy(x, k=0), "k = 0"),
        (lambda: knn_entropy(x[:3]), "more than k = 3 rows"),
        (lambda: knn_entropy(x.repeat(4, 1)), "coincide"),
        (lambda: knn_entropy(x[:, 0]), "2 axes"),
        (lambda: knn_entropy(torch.where(x > 1, math.nan, x)), "finite"),
        (lambda: knn_kl_divergence(x, draws(20, 2)), "axis d"),
        (lambda: knn_kl_divergence(x, x.float()), "one dtype"),
        (lambda: ksg_mutual_information(x, x[:10]), "axis n"),
    ]
    for call, words in refused:
        with pytest.raises(UserError) as told:
            call()
        assert words in str(told.value), str(told.value)
        assert "\n" not in str(told.value)
