"""Augmentation against its definition, image by image; in training only, and to the same bits however batches and runs
are cut."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from quoin.data import (
    RowNoise,
    background,
    load,
    prepare,
    random_cutout,
    random_horizontal_flip,
    random_resized_crop,
    random_shift,
    split,
)
from quoin.errors import UserError
from quoin.tasks.image_classification import augmentation
from quoin.tasks.options import AugmentOptions
from seeds import seeded
from tasks import Crash, Disk, classification, difference, left_behind, new_folder, numbers_dataset, parted, run_loop

ALL = {
    "shift": partial(random_shift, size=2),
    "crop": partial(random_resized_crop, size=2),
    "flip": random_horizontal_flip,
    "cutout": partial(random_cutout, size=3),
}
shapes = st.tuples(st.integers(1, 4), st.integers(1, 3), st.integers(3, 9), st.integers(3, 9))


def pictures(shape, seed=0, dtype=torch.float32):
    """No two pixels alike, and none of them 0, so that what was moved where can be read off."""
    places = torch.randperm(math.prod(shape), generator=torch.Generator().manual_seed(seed))
    return (places.reshape(shape) + 1).to(dtype)


@given(shapes, st.integers(0, 2), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_shift_moves_each_image_whole_and_fills_with_the_channels_background(shape, size, seed):
    _, c, h, w = shape
    images, fill = pictures(shape, dtype=torch.float64), -torch.arange(1.0, c + 1).double()[:, None, None]
    moved = random_shift(images, seeded(seed), size, fill=fill)
    for before, after in zip(images, moved):
        candidates = []
        for down in range(-size, size + 1):
            for right in range(-size, size + 1):
                expected = fill.expand(c, h, w).clone()
                for i in range(h):
                    for j in range(w):
                        if 0 <= i - down < h and 0 <= j - right < w:
                            expected[:, i, j] = before[:, i - down, j - right]
                candidates.append(expected)
        assert any(torch.equal(after, each) for each in candidates)


@given(shapes, st.integers(0, 2), st.integers(0, 10**6))
@settings(max_examples=40, deadline=None)
def test_a_crop_is_a_window_cut_out_and_resized(shape, size, seed):
    *_, h, w = shape
    images = pictures(shape, dtype=torch.float64)
    for before, after in zip(images, random_resized_crop(images, seeded(seed), size)):
        candidates = [
            functional.interpolate(
                before[None, :, i : i + h - k, j : j + w - k], (h, w), mode="bilinear", align_corners=False
            )[0]
            for k in range(size + 1)
            for i in range(k + 1)
            for j in range(k + 1)
        ]
        assert min((after - each).abs().max() for each in candidates) < 1e-9


@given(shapes, st.integers(0, 10**6))
@settings(max_examples=30, deadline=None)
def test_a_flip_reverses_the_rows_of_some_images(shape, seed):
    images = pictures(shape)
    for before, after in zip(images, random_horizontal_flip(images, seeded(seed))):
        assert after.tolist() in (before.tolist(), [[row[::-1] for row in channel] for channel in before.tolist()])


@given(shapes, st.integers(0, 2), st.integers(0, 10**6))
@settings(max_examples=60, deadline=None)
def test_a_cutout_covers_a_square_about_some_pixel_in_all_channels(shape, size, seed):
    *_, h, w = shape
    images = pictures(shape)
    for before, after in zip(images, random_cutout(images, seeded(seed), size, fill=-7.0)):
        candidates = []
        for i in range(h):
            for j in range(w):
                expected = before.clone()
                top, left = i - size // 2, j - size // 2
                expected[:, max(top, 0) : max(top + size, 0), max(left, 0) : max(left + size, 0)] = -7.0
                candidates.append(expected)
        assert any(torch.equal(after, each) for each in candidates)


def frequencies(found, num):
    """How often each of `num` outcomes came, and how far a uniform distribution lets a count stray: five and a half
    standard deviations."""
    counts = torch.bincount(found, minlength=num)
    return counts, len(found) / num, 5.5 * math.sqrt(len(found) / num * (1 - 1 / num))


def test_every_shift_flip_and_place_is_as_likely_as_the_others():
    n, size = 20_000, 1
    dot = torch.zeros(n, 1, 5, 5)
    dot[:, :, 2, 2] = 1
    places = random_shift(dot, seeded(1), size).flatten(1).argmax(1)
    offsets = (places // 5 - 1) * 3 + places % 5 - 1
    mirrored = random_horizontal_flip(torch.tensor([1.0, 0.0]).expand(n, 1, 1, 2), seeded(2))[:, 0, 0, 1].long()
    covered = random_cutout(torch.ones(n, 1, 3, 4), seeded(3), 1).flatten(1).argmin(1)
    # Cut to one pixel fewer or not at all; a window's place is told by its first pixel, which a stretched window
    # repeats.
    ramp = torch.arange(16.0).reshape(1, 1, 4, 4).expand(n, 1, 4, 4)
    first = random_resized_crop(ramp, seeded(4), 1)[:, 0, 0, 0].round().long()
    for found, num in ((offsets, 9), (mirrored, 2), (covered, 12)):
        counts, expected, bound = frequencies(found, num)
        assert len(counts) == num
        assert (counts - expected).abs().max() < bound
    counts = torch.bincount(first, minlength=6)[[0, 1, 4, 5]]  # k = 0 half the time, and then at the corner as well
    expected = n * torch.tensor([5 / 8, 1 / 8, 1 / 8, 1 / 8])
    assert counts.sum() == n
    assert ((counts - expected).abs() < 5.5 * (expected * (1 - expected / n)).sqrt()).all()


@pytest.mark.parametrize("change", ALL.values(), ids=ALL)
def test_images_are_changed_one_by_one_by_the_generator_alone(change):
    images = pictures((64, 2, 8, 6))
    before = images.clone()
    changed = change(images, seeded(5))
    assert torch.equal(images, before)
    assert torch.equal(changed, change(images, seeded(5)))
    assert not torch.equal(changed, change(images, seeded(6)))
    alike = change(images[:1].expand(64, 2, 8, 6), seeded(5))
    assert len(alike.unique(dim=0)) > 1  # each image has its own draw
    assert torch.equal(
        changed[:1], change(torch.cat([images[:1], -images[1:]]), seeded(5))[:1]
    )  # which no other image's pixels touch
    assert changed.dtype == images.dtype
    assert changed.shape == images.shape
    assert change(images[:0], seeded(5)).shape == (0, 2, 8, 6)
    for each in (changed, change(images.double(), seeded(5))):
        assert each.isfinite().all()


@pytest.mark.parametrize(
    ("change", "what"), [(random_shift, "a shift"), (random_resized_crop, "a crop"), (random_cutout, "a cutout")]
)
@pytest.mark.parametrize("size", [-1, 4, 100])
def test_a_size_that_leaves_nothing_of_the_image_is_refused(change, what, size):
    with pytest.raises(UserError, match=rf"expected {what} of 0 to 3 pixels for images of 6 x 4, got {size}; choose"):
        change(torch.zeros(2, 1, 6, 4), seeded(), size)


@pytest.mark.parametrize("change", ALL.values(), ids=ALL)
def test_what_is_no_batch_of_images_is_refused(change):
    with pytest.raises(UserError, match="expected images with 4 axes"):
        change(torch.zeros(6, 4), seeded())


def test_the_background_is_what_black_became():
    data = load("digits")
    ready = prepare(data, split(data, 0))
    black = background(ready.feature_scaler)
    assert black.shape == (1, 1, 1)
    corner = ready.train.features[:, 0, 0, 0]  # no digit of the set has ink there
    assert torch.equal(corner, black.flatten().expand_as(corner))
    moved = augmentation(AugmentOptions(shift=2), ready)(ready.train.features, seeded())  # pyright: ignore
    assert moved.min() == ready.train.features.min() == black


def test_options_name_what_is_done_and_nothing_is_nothing():
    data = load("digits")
    ready = prepare(data, split(data, 0))
    images = ready.train.features[:50]
    assert augmentation(AugmentOptions(), ready) is None
    found = augmentation(AugmentOptions(crop=2, shift=1, flip=True, cutout=3), ready)
    drawn = seeded(8)
    expected = random_cutout(
        random_horizontal_flip(
            random_shift(random_resized_crop(images, drawn, 2), drawn, 1, fill=background(ready.feature_scaler)), drawn
        ),
        drawn,
        3,
    )
    assert torch.equal(found(images, seeded(8)), expected)  # pyright: ignore
    for options in (AugmentOptions(shift=8), AugmentOptions(crop=8), AugmentOptions(cutout=9)):
        with pytest.raises(UserError, match="of 0 to 7 pixels for images of 8 x 8"):
            augmentation(options, ready)


# In training


@pytest.fixture
def classes():
    return parted(numbers_dataset(classes=3), 16, 6)


def noisy(features, noise):
    return features + noise.normal(*features.shape[1:])


def test_each_step_draws_from_its_seed_and_its_number_alone(classes):
    seen = []

    def watched(features, noise):
        seen.append(noise.uniform(3).tolist())
        return features

    for seed in (0, 0, 1):
        task = classification(classes, seed=seed, augment=watched)
        for rows in (torch.arange(8), torch.arange(3)):
            task.step(rows)
    keys = ((0, 0), (0, 1), (0, 0), (0, 1), (1, 0), (1, 1))  # seed and step
    assert seen == [RowNoise("augment", *key, num_rows=(8, 3)[key[1]]).uniform(3).tolist() for key in keys]


@pytest.mark.parametrize("micro_batch_size", [1, 3, 5])
def test_a_batch_in_pieces_is_augmented_as_the_whole(classes, micro_batch_size):
    def gradient(**how):
        task = classification(classes, augment=noisy, **how)
        task.step(torch.arange(8))
        return torch.cat([each.grad.flatten() for each in task.model.parameters() if each.grad is not None])

    torch.testing.assert_close(gradient(micro_batch_size=micro_batch_size), gradient(), rtol=1e-5, atol=1e-6)


def test_only_training_is_augmented(classes):
    def spoilt(features, noise):
        return features * 0 + 100

    plain, augmented = classification(classes), classification(classes, augment=spoilt)
    for part in ("train", "validation", "test"):
        assert plain.evaluate(part) == augmented.evaluate(part)
        assert torch.equal(plain.predict_split(part), augmented.predict_split(part))
    rows = torch.arange(8)
    assert plain.step(rows)["loss"] != augmented.step(rows)["loss"]


def test_a_run_with_augmentation_resumes_to_the_same_bits(classes, tmp_path, monkeypatch):
    Disk(monkeypatch, tmp_path)
    whole, halted = new_folder(tmp_path), new_folder(tmp_path)
    run_loop(classification(classes, augment=noisy), whole)
    task = classification(classes, augment=noisy)
    step = task.step

    def killed(rows):
        if task.step_count == 3:  # in the middle of the second epoch
            raise Crash
        return step(rows)

    task.step = killed
    with pytest.raises(Crash):
        run_loop(task, halted)
    run_loop(classification(classes, augment=noisy), halted, resume=True)
    assert difference(left_behind(whole), left_behind(halted)) is None
