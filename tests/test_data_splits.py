"""Splits, folds, scaling and batches: what must hold for every size, seed and class balance."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import StandardScaler as PeerScaler

from quoin.data import BatchSampler, Dataset, StandardScaler, epoch_permutation, fold, split
from quoin.errors import UserError

fast = settings(max_examples=60, deadline=None)
labels = st.lists(st.integers(0, 3), min_size=10, max_size=200)
seeds = st.integers(0, 2**40)


def table(targets, class_names=("a", "b", "c", "d"), test_start=None):
    dtype = torch.float32 if class_names is None else torch.int64
    rows = torch.arange(len(targets), dtype=torch.float32)[:, None]
    return Dataset("t", rows, torch.tensor(targets, dtype=dtype), ("x",), class_names, test_start=test_start)


def counts(targets, rows):
    return torch.bincount(torch.tensor(targets)[rows], minlength=4)


@fast
@given(labels, seeds, st.sampled_from([0.1, 0.2, 0.3]), st.sampled_from([0.1, 0.25]), st.booleans())
def test_a_split_is_disjoint_complete_and_of_exact_size(targets, seed, validation, test, classes):
    parts = split(table(targets, ("a", "b", "c", "d") if classes else None), seed, validation=validation, test=test)
    assert torch.cat(parts).sort().values.tolist() == list(range(len(targets)))
    assert abs(len(parts.test) - test * len(targets)) <= 0.5 + 1e-9
    assert abs(len(parts.validation) - validation * len(targets)) <= 0.5 + 1e-9


@fast
@given(labels, seeds)
def test_each_part_has_its_share_of_each_class(targets, seed):
    parts = split(table(targets), seed, validation=0.2, test=0.3)
    whole, judged, chosen = counts(targets, slice(None)), counts(targets, parts.test), counts(targets, parts.validation)
    assert ((judged - whole * len(parts.test) / len(targets)).abs() < 1).all()
    left = whole - judged
    assert ((chosen - left * len(parts.validation) / (len(targets) - len(parts.test))).abs() < 1).all()


def test_a_split_is_a_function_of_the_seed():
    data = table([i % 4 for i in range(100)])
    torch.manual_seed(1)
    first = split(data, 5)
    torch.manual_seed(2)
    again, other = split(data, 5), split(data, 6)
    assert all(torch.equal(a, b) for a, b in zip(first, again))
    assert not torch.equal(first.test, other.test)


def test_every_row_is_held_out_by_some_seed():
    data = table([0, 1, 2, 3] * 5)
    times = sum(torch.bincount(split(data, seed).test, minlength=20) for seed in range(400))
    # Each row is held out with probability 1/5: 80 of 400, standard deviation 8.
    assert (torch.as_tensor(times) - 80).abs().max() < 6 * 8


def test_classes_of_one_row_are_not_always_kept_from_the_test():
    data = Dataset("t", torch.zeros(10, 1), torch.arange(10), ("x",), tuple("abcdefghij"))
    held = torch.cat([split(data, seed).test for seed in range(100)]).unique()
    assert len(held) == 10


def test_a_sources_own_test_part_is_kept():
    parts = split(table([i % 4 for i in range(50)], test_start=40), 0, validation=0.25)
    assert parts.test.tolist() == list(range(40, 50))
    assert len(parts.validation) == 10
    assert torch.cat([parts.train, parts.validation]).sort().values.tolist() == list(range(40))
    folds = [fold(table([i % 4 for i in range(50)], test_start=40), 4, index, 0) for index in range(4)]
    assert torch.cat([part.test for part in folds]).sort().values.tolist() == list(range(40))


@fast
@given(labels, seeds, st.integers(2, 7), st.booleans())
def test_folds_cover_every_row_once(targets, seed, num_folds, classes):
    data = table(targets, ("a", "b", "c", "d") if classes else None)
    folds = [fold(data, num_folds, index, seed) for index in range(num_folds)]
    assert torch.cat([part.test for part in folds]).sort().values.tolist() == list(range(len(targets)))
    sizes = [len(part.test) for part in folds]
    assert max(sizes) - min(sizes) <= 1
    for part in folds:
        assert torch.cat(part).sort().values.tolist() == list(range(len(targets)))
    if classes:
        held = torch.stack([counts(targets, part.test) for part in folds])
        assert (held.amax(0) - held.amin(0)).max() <= 1


def test_parts_that_cannot_be_are_told_in_one_line():
    with pytest.raises(UserError, match="fewer folds"):
        fold(table([0, 1, 2]), 4, 0, 0)
    with pytest.raises(UserError, match="2 folds"):
        fold(table([0, 1, 2]), 1, 0, 0)
    with pytest.raises(UserError, match="from 0 to 2"):
        fold(table([0, 1, 2] * 4), 3, 3, 0)
    for parted, needed in [
        (lambda n: split(table([0] * n), 0), 3),  # round(0.2 n) is 1 from 3 rows on
        (lambda n: split(table([0] * n), 0, validation=0.1), 6),  # round(0.1 n) from 6 on
        (lambda n: fold(table([0] * n), 2, 0, 0, validation=0.1), 12),  # the 6 that are not in the first fold
        (
            lambda n: split(table([0] * (n + 5), test_start=n), 0, test=0.5),
            3,
        ),  # the source's own test rows do not count
    ]:
        with pytest.raises(UserError, match=f"at least {needed} rows .* has 2: add rows"):
            parted(2)
        with pytest.raises(UserError, match=f"at least {needed} rows .* has {needed - 1}: add rows"):
            parted(needed - 1)
        assert all(len(part) for part in parted(needed))
    with pytest.raises(UserError, match="at least 10002 rows"):
        split(table([0, 0]), 0, validation=1e-9)  # and the search for the number ends
    for validation, test in [(0.5, 0.5), (-0.1, 0.2), (float("nan"), 0.1)]:
        with pytest.raises(UserError, match="fractions"):
            split(table([0, 1] * 10), 0, validation=validation, test=test)
    assert [len(part) for part in split(table([0, 1] * 10), 0, validation=0, test=0)] == [20, 0, 0]


def test_standardising_agrees_with_scikit_learn_and_inverts():
    x = torch.randn(20_000, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 10, 0.01, 100, 3]) + 5
    scale = StandardScaler.fit(x)
    peer: Any = PeerScaler().fit(x.double().numpy())
    assert np.allclose(scale.mean.numpy(), peer.mean_, rtol=1e-12)
    assert np.allclose(scale.std.numpy(), peer.scale_, rtol=1e-12)
    assert np.allclose(scale.transform(x).numpy(), peer.transform(x.double().numpy()), atol=1e-6)
    assert scale.transform(x).dtype == torch.float32
    torch.testing.assert_close(scale.inverse_transform(scale.transform(x)), x.double(), rtol=1e-6, atol=1e-5)


def test_standardising_is_right_in_float32_at_a_great_offset():
    x = 1e6 + torch.randint(0, 16, (10_000, 2), generator=torch.Generator().manual_seed(0)).float() / 16
    exact = x.numpy().astype(np.float64)
    scaled = StandardScaler.fit(x).transform(x)
    assert np.allclose(scaled.numpy(), (exact - exact.mean(0)) / exact.std(0), atol=1e-6)


def test_a_constant_feature_is_left_at_zero():
    for dtype in (torch.float32, torch.float64):  # in float64 the mean of many 0.1 is not 0.1
        x = torch.full((30_001, 1), 0.1, dtype=dtype)
        scale = StandardScaler.fit(x)
        assert scale.std.item() == 1
        assert scale.transform(x).abs().max() < 1e-9


def test_only_the_chosen_rows_are_standardised_by():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(30_000, 60, generator=generator)  # several chunks
    rows = torch.randperm(30_000, generator=generator)[:25_000]
    scale, peer = StandardScaler.fit(x, rows), PeerScaler().fit(x[rows].double().numpy())
    np.testing.assert_allclose(scale.mean, peer.mean_, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(scale.std, peer.scale_, rtol=1e-12)
    torch.testing.assert_close(scale.transform(x, rows), scale.transform(x)[rows], rtol=0, atol=0)


def test_a_channel_has_one_scale():
    images = torch.rand(700, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    rows = torch.arange(0, 700, 2)
    scale, seen = StandardScaler.fit(images, rows, per_channel=True), images[rows].double()
    torch.testing.assert_close(scale.mean, seen.mean((0, 2, 3))[:, None, None], rtol=1e-12, atol=0)
    torch.testing.assert_close(scale.std, seen.std((0, 2, 3), correction=0)[:, None, None], rtol=1e-12, atol=0)


def test_images_and_plain_numbers_are_standardised_too():
    x = torch.rand(50, 2, 3, 3, generator=torch.Generator().manual_seed(0))
    assert np.allclose(StandardScaler.fit(x).transform(x).numpy(), (x - x.mean(0)) / x.std(0, correction=0), atol=1e-5)
    y = 1e6 + torch.arange(8.0) / 4
    assert np.allclose(
        StandardScaler.fit(y).transform(y), PeerScaler().fit_transform(y.double()[:, None].numpy())[:, 0], atol=1e-6
    )


@fast
@given(st.integers(1, 200), st.integers(1, 50), seeds, st.integers(1, 5))
def test_an_epoch_is_a_permutation_and_ranks_share_each_batch(num_rows, batch_size, seed, world_size):
    ranks = [
        list(BatchSampler(num_rows, batch_size, seed=seed, rank=rank, world_size=world_size))
        for rank in range(world_size)
    ]
    whole = list(BatchSampler(num_rows, batch_size, seed=seed))
    assert torch.cat(whole).sort().values.tolist() == list(range(num_rows))
    assert [len(batch) for batch in whole[:-1]] == [batch_size] * (len(whole) - 1)
    for number, batch in enumerate(whole):
        shares = [rank[number] for rank in ranks]
        assert torch.equal(torch.cat(shares), batch)
        sizes = [len(share) for share in shares]
        assert max(sizes) - min(sizes) <= 1


@fast
@given(st.integers(1, 60), st.integers(1, 20), st.integers(0, 100))
def test_a_saved_position_resumes_with_the_next_batch(num_rows, batch_size, stop):
    def stream(batches, count):
        found = []
        while len(found) < count:
            for batch in batches:
                found.append(batch.tolist())
                if len(found) == count:
                    break
        return found

    unbroken = stream(BatchSampler(num_rows, batch_size, seed=9), stop + 30)
    first = BatchSampler(num_rows, batch_size, seed=9)
    before = stream(first, stop)
    second = BatchSampler(num_rows, batch_size, seed=9)
    second.load_state_dict(first.state_dict())
    assert before + stream(second, 30) == unbroken


def test_epochs_differ_and_the_end_of_one_is_the_start_of_the_next():
    batches = BatchSampler(10, 4, seed=0)
    walked = iter(batches)
    assert (batches.epoch, batches.position, batches.num_batches) == (0, 0, 3)
    for position in (1, 2, 3):
        next(walked)
        assert (batches.epoch, batches.position) == (0, position)
    assert list(walked) == []
    assert (batches.epoch, batches.position) == (1, 0)
    assert torch.equal(torch.cat(list(batches)), epoch_permutation(0, 1, 10))
    assert not torch.equal(epoch_permutation(0, 0, 10), epoch_permutation(0, 1, 10))
    assert not torch.equal(epoch_permutation(0, 1, 10), epoch_permutation(1, 0, 10))
    torch.manual_seed(3)
    assert torch.equal(epoch_permutation(0, 1, 10), epoch_permutation(0, 1, 10))
    assert torch.cat(list(BatchSampler(10, 4, seed=0, shuffle=False))).tolist() == list(range(10))


def test_batches_refuse_what_cannot_be():
    with pytest.raises(UserError, match="rows"):
        BatchSampler(0, 4, seed=0)
    with pytest.raises(UserError, match="batch size"):
        BatchSampler(4, 0, seed=0)
    with pytest.raises(ValueError, match="rank"):
        BatchSampler(4, 1, seed=0, rank=2, world_size=2)
    state = BatchSampler(10, 4, seed=0).state_dict()
    for wrong in [
        {"seed": 1},
        {"num_rows": 11},
        {"batch_size": 5},
        {"shuffle": 0},
        {"position": 4},
        {"epoch": -1},
        {"more": 1},
    ]:
        with pytest.raises(UserError):
            BatchSampler(10, 4, seed=0).load_state_dict(state | wrong)
    with pytest.raises(UserError):
        BatchSampler(10, 4, seed=0).load_state_dict({})


def test_an_epoch_is_shuffled_once(monkeypatch):
    """So that a batch costs microseconds."""
    drawn, shuffle = [], torch.randperm
    monkeypatch.setattr("torch.randperm", lambda *given, **named: drawn.append(given) or shuffle(*given, **named))
    assert sum(1 for _ in BatchSampler(2000, 10, seed=0)) == 200
    assert drawn == [(2000,)]
