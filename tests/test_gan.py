"""Generative adversarial networks: what they draw, two updates a step that touch one player each, and a ring no bump of
which is lost."""

import json
import math
from typing import Any

import pytest
import torch

from commands import refused, tried
from quoin.data import RowNoise, make_blobs
from quoin.errors import UserError
from quoin.losses import non_saturating_loss
from quoin.metrics import mode_coverage, nearest_modes
from quoin.models import GAN, DecoderModel, GenerativeModel, conv_gan, mlp_gan
from quoin.notes.figures.adversarial import MODES, NOISE, ring_gan
from quoin.runs import find_recipe
from quoin.tasks import evaluation_classifier as judge
from quoin.tasks.gan import GANTask
from quoin.tasks.image_generation import GenerativeTask
from quoin.train import DeviceContext
from seeds import seeded
from tasks import copy_state

pytestmark = pytest.mark.usefixtures("one_thread", "quick_judge")


@pytest.fixture
def quick_judge(monkeypatch):
    """What a judge says is not what these tests are about."""
    monkeypatch.setattr(judge, "NUM_STEPS", 2)


@pytest.mark.parametrize("shape", [(1, 8, 8), (3, 12, 4)])
def test_images_are_drawn_in_range_and_by_the_generator_alone(shape):
    model = conv_gan(shape, latent_dim=5, base_channels=8, generator=seeded())
    assert isinstance(model, GenerativeModel)
    assert isinstance(model, DecoderModel)
    images = model.sample(6, generator=seeded(1))
    assert images.shape == (6, *shape)
    assert float(images.min()) >= 0
    assert float(images.max()) <= 1
    assert not images.requires_grad
    assert torch.equal(images, model.sample(6, generator=seeded(1)))
    assert not torch.equal(images, model.sample(6, generator=seeded(2)))
    assert torch.equal(images[:2], model.sample(6, generator=seeded(1))[:2])
    assert model.discriminator(images).shape == (6,)
    again = conv_gan(shape, latent_dim=5, base_channels=8, generator=seeded())
    assert all(torch.equal(one, other) for one, other in zip(model.parameters(), again.parameters()))


def test_each_example_is_made_and_judged_alone():
    """What a penalty on the discriminator's slopes rests on, and what makes samples independent."""
    model = conv_gan((1, 8, 8), latent_dim=3, base_channels=8, generator=seeded())
    z = torch.randn(4, 3, generator=seeded(1))
    torch.testing.assert_close(model(z)[:1], model(z[:1]))
    images = torch.rand(4, 1, 8, 8, generator=seeded(2))
    torch.testing.assert_close(model.discriminator(images)[:1], model.discriminator(images[:1]))


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: mlp_gan(2, latent_dim=0), "at least one latent coordinate"),
        (lambda: conv_gan((1, 8, 8), latent_dim=0), "at least one latent coordinate"),
        (lambda: GAN(torch.nn.Identity(), torch.nn.Identity(), 0), "at least one latent coordinate"),
        (lambda: conv_gan((1, 9, 8)), "multiples of 4"),
        (lambda: conv_gan((1, 8, 8), base_channels=12), "multiple of 8"),
        (lambda: mlp_gan(2).sample(0, generator=seeded()), "at least one example to sample"),
        (lambda: mlp_gan(2).sample(-3, generator=seeded()), "at least one example to sample"),
        (lambda: mlp_gan(2)(torch.zeros(3, 7)), "expected noise (n, 2)"),
        (lambda: conv_gan((1, 8, 8)).discriminator(torch.zeros(2, 1, 4, 4)), "8x8 pixels"),
    ],
)
def test_bad_input_is_told(call, told):
    with pytest.raises(UserError) as caught:
        call()
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def built(**options: Any) -> Any:
    recipe = find_recipe("gan")
    return recipe.build(recipe.options(**{"num_samples": 100, **options}), DeviceContext())


def weights(net: torch.nn.Module) -> list[torch.Tensor]:
    return [each.detach().clone() for each in net.parameters()]


def moved(before: list[torch.Tensor], net: torch.nn.Module) -> list[bool]:
    return [not torch.equal(one, other) for one, other in zip(before, net.parameters())]


def test_a_step_moves_each_player_by_its_own_loss():
    """Replayed with plain torch: the discriminator up V less the penalty, then the generator down its loss against the
    new one."""
    task, twin = built(), built().model.double()  # in float32 the sign of a gradient of nearly 0 is one of rounding
    task.model.double()
    object.__setattr__(task.data.train, "features", task.data.train.features.double())
    rows = torch.arange(20)
    forging = torch.optim.Adam(twin.generator.parameters(), task.options.lr, (0.5, 0.99))
    judging = torch.optim.Adam(twin.discriminator.parameters(), task.options.lr, (0.5, 0.99))
    bce, ones = torch.nn.functional.binary_cross_entropy_with_logits, torch.ones(20, dtype=torch.float64)
    for step in range(3):  # in the first Adam goes by the sign alone, whatever its momentum
        real = task.data.train.features[rows].clone().requires_grad_()
        fake = twin(RowNoise("rival", 0, step, num_rows=20).normal(32, dtype=torch.float64)).detach()
        logits = twin.discriminator(real)
        slopes = torch.autograd.grad(logits.sum(), real, create_graph=True)[0]
        judged = bce(logits, ones) + bce(twin.discriminator(fake), 0 * ones)
        judging.zero_grad()
        (judged + task.penalty / 2 * slopes.square().sum() / 20).backward()
        judging.step()
        noise = RowNoise("loss", 0, step, num_rows=20).normal(32, dtype=torch.float64)
        fooled = bce(twin.discriminator(twin(noise)), ones)
        forging.zero_grad()
        fooled.backward()
        forging.step()

        sums = task.step(rows)
        assert float(sums["value"]) == pytest.approx(-20 * judged.item(), rel=1e-6)
        assert float(sums["loss"]) == pytest.approx(20 * fooled.item(), rel=1e-6)
    for mine, its in zip(task.model.parameters(), twin.parameters()):
        torch.testing.assert_close(mine, its, rtol=1e-5, atol=1e-6)
    assert all(each.requires_grad for each in task.model.parameters())


def test_weights_of_both_players_decay():
    """Of the same gradients each weight ends nearer to 0, by the rate times the decay times what it was."""
    for name, move in (("discriminator", GANTask._move_discriminator), ("generator", GenerativeTask.step)):
        plain, pulled = built(), built(weight_decay=10.0)
        player, held = getattr(plain.model, name), getattr(pulled.model, name)
        before = weights(player)
        for task in (plain, pulled):
            move(task, torch.arange(20))
        for first, mine, its in zip(before, player.parameters(), held.parameters()):
            torch.testing.assert_close(mine - its, 10 * plain.options.lr * first, rtol=1e-3, atol=1e-5)


def test_micro_batches_make_the_same_discriminator():
    """Of the same fakes: noise comes from one generator, piece by piece."""
    whole, parted = built(), built(micro_batch_size=5)
    rows = torch.arange(20)
    for task in (whole, parted):
        task._move_discriminator(rows)
    for mine, its in zip(whole.model.discriminator.parameters(), parted.model.discriminator.parameters()):
        torch.testing.assert_close(mine, its, rtol=1e-3, atol=1e-4)


def test_the_rival_survives_a_save():
    one, other = built(), built()
    one.step(torch.arange(16))
    other.load_state_dict(copy_state(one.state_dict()))
    before = weights(other.model)
    found = [task.step(torch.arange(16, 32)) for task in (one, other)]
    assert found[0] == found[1]
    assert all(torch.equal(mine, its) for mine, its in zip(one.model.parameters(), other.model.parameters()))
    assert all(moved(before, other.model))


def test_the_minimax_loss_can_be_had():
    assert (
        float(built(loss="minimax").step(torch.arange(16))["loss"]) < 0 < float(built().step(torch.arange(16))["loss"])
    )


def test_a_generator_at_rest_stays(monkeypatch):
    """A discriminator that says 1/2 of everything has no slopes to follow."""
    task = built()
    for each in task.model.discriminator.parameters():
        each.data.zero_()
    before = weights(task.model.generator)
    monkeypatch.setattr(task, "_move_discriminator", lambda rows: torch.zeros(()))
    found = task.step(torch.arange(8))
    assert float(found["loss"]) == pytest.approx(8 * math.log(2))
    assert not any(moved(before, task.model.generator))
    assert float(non_saturating_loss(torch.zeros(1))) == pytest.approx(math.log(2))


def test_a_ring_of_bumps_is_learnt_whole():
    model, centers = ring_gan(300, generator=seeded(0))
    found = mode_coverage(
        nearest_modes(model.sample(2000, generator=seeded(1)), centers, 4 * NOISE), torch.full((MODES,), 1 / MODES)
    )
    assert found.covered == MODES
    assert found.min_ratio > 0.2
    real = make_blobs(800, centers.tolist(), noise=NOISE, generator=seeded(2)).features
    assert (
        mode_coverage(nearest_modes(real, centers, 4 * NOISE), torch.full((MODES,), 1 / MODES)).unassigned_fraction
        < 0.01
    )
    noise = torch.randn(2000, 2, generator=seeded(3))
    assert (
        mode_coverage(nearest_modes(noise, centers, 4 * NOISE), torch.full((MODES,), 1 / MODES)).unassigned_fraction
        > 0.5
    )


def test_a_short_run_tells_what_became_of_the_classes(tmp_path):
    code, out, _ = tried(
        "train", "gan", "--max-steps", 3, "--num-samples", 50, "--num-threads", 1, "--runs", tmp_path, "--json"
    )
    assert code == 0
    metrics = json.loads(out)["metrics"]
    assert {"test_mmd", "test_coverage", "test_min_class_ratio", "test_class_total_variation"} <= metrics.keys()
    assert 0 <= metrics["test_class_total_variation"] <= 1
    page = (tmp_path / "gan-1" / "report.html").read_text(encoding="utf-8")
    for title in ("Samples", "Classes", "Latent interpolation"):
        assert f">{title}<" in page


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--latent-dim", 0), "latent"),
        (("--r1-weight", -1), "r1-weight"),
        (("--base-channels", 12), "multiple of 8"),
        (("--num-samples", 0), "samples"),
        (("--data", "moons"), "expected images"),
        (("--classifier", "nowhere"), "quoin train lenet"),
    ],
)
def test_options_that_cannot_be(words, told, tmp_path):
    assert told in refused("train", "gan", *words, "--num-threads", 1, "--runs", tmp_path)
    assert not list(tmp_path.iterdir())
