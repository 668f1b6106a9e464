"""One batch gives one step, in however many micro-batches it is computed and over however many processes it is shared
out: the recipes that follow gradients, with their dropout, noise and augmentation.

Without a process group: a rank's gradients are computed as the rank would compute them, and those of all are added up.
"""

import copy
import itertools
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from quoin.data import BatchSampler
from quoin.runs import find_recipe, recipe_names
from quoin.train import DeviceContext, GradientTask
from quoin.train.global_batch import cut_batch

BATCH = 7
STEPS = 5
SMALL = {
    "batch_size": BATCH, "dropout": 0.3, "num_pairs": 120, "num_texts": 60, "num_examples": 100, "num_samples": 20,
    "context_length": 12, "num_sequences": 4, "class_dropout": 0.3,
}  # fmt: skip
OPTIONS = {
    "lenet": {"crop": 1, "shift": 1, "cutout": 2, "mixup": 0.5},
    "vit": {"flip": True, "mixup": 0.5},
    "mlp": {"mixup": 0.5, "dropout": 0.3},
    "lstm-lm": {"num_layers": 2},
    "sequence-classification": {"encoder": "recurrent", "num_layers": 2},
    "signal-classification": {"encoder": "gru", "num_layers": 2},
    "translate-dates": {"num_layers": 2},
    "transformer-lm": {"embed_dim": 32, "num_heads": 2, "num_layers": 2},
}
# Batch normalisation takes its mean and variance over what is in memory at once: a micro-batch is another batch to it.
# Its mean over processes is in test_global_batch.py.
NORMALISED = {"densenet", "googlenet", "resnet", "resnext"}
# Their samples belong to a step, not to rows, or they are several models with batches of their own.
WITHOUT_ROWS = {"inductive-bias"}
FAST = ("mlp", "lenet", "transformer-lm", "lstm-lm", "vae", "gan", "diffusion-2d", "sequence-classification")


def small_options(recipe, **more):
    chosen = SMALL | OPTIONS.get(recipe.name, {}) | more
    return recipe.options(
        **{name: value for name, value in chosen.items() if name in recipe.options.__dataclass_fields__}
    )


def built(name, *, rank=0, world_size=1, micro_batch_size=0):
    recipe = find_recipe(name)
    context = DeviceContext(rank=rank, world_size=world_size)
    torch.manual_seed(0)
    task = recipe.build(small_options(recipe, micro_batch_size=micro_batch_size), context)
    task = getattr(task, "task", task)  # of one who counts regions beside
    for model in models_of(task):
        model.double()
    if hasattr(task, "points"):
        task.points = {split: points.double() for split, points in task.points.items()}
    train = getattr(getattr(task, "data", None), "train", None)
    if train is not None and train.features.is_floating_point():
        object.__setattr__(train, "features", train.features.double())
        if train.targets.is_floating_point():
            object.__setattr__(train, "targets", train.targets.double())
    return task


def models_of(task):
    """All that are trained, and their moving averages."""
    averages = [updater.ema.module for updater in updaters_of(task) if updater.ema is not None]
    return [updater.model for updater in updaters_of(task)] + averages


def updaters_of(task):
    if hasattr(task, "updaters"):
        return list(task.updaters.values())
    others = [other.updater for other in getattr(task, "others", {}).values()]
    return [task.updater, *others] + ([task.rival] if hasattr(task, "rival") else [])


def losses_of_steps(name, micro_batch_size):
    task, losses = built(name, micro_batch_size=micro_batch_size), []
    for rows in itertools.islice(itertools.chain(task.batches, task.batches), STEPS):
        losses.append({key: float(value) for key, value in task.step(rows).items()})
    return losses


def gradients_of_step(name, *, world_size=1, micro_batch_size=0, steps=2):
    """The sums of all ranks' gradients and losses in the last of `steps`, in which no weights move."""
    total, loss = None, 0.0
    for rank in range(world_size):
        task = built(name, rank=rank, world_size=world_size, micro_batch_size=micro_batch_size)
        for updater in updaters_of(task):
            updater.update = lambda pieces, losses, *, weight, updater=updater: add_gradients(
                updater, pieces, losses, weight
            )
        for rows in itertools.islice(task.batches, steps):
            for model in models_of(task):
                model.zero_grad()
            found = task.step(rows)["loss"]
        loss += float(found)
        parts = [
            torch.zeros_like(each) if each.grad is None else each.grad
            for updater in updaters_of(task)
            for each in updater.model.parameters()
        ]
        flat = torch.cat([part.flatten() for part in parts])
        total = flat if total is None else total + flat
    return total, loss


def add_gradients(updater, pieces, losses, weight):
    sums = []
    for piece in pieces:
        found = losses(*piece)
        found.backward(torch.full_like(found, weight))
        sums.append(found.detach().sum())
    updater.step_count += 1
    return torch.stack(sums).sum()


def recipes_with_rows():
    chosen = [
        name
        for name in recipe_names()
        if "micro_batch_size" in find_recipe(name).options.__dataclass_fields__
        and name not in NORMALISED | WITHOUT_ROWS
    ]
    return [name if name in FAST else pytest.param(name, marks=pytest.mark.deep) for name in chosen]


@pytest.mark.parametrize("name", recipes_with_rows())
def test_micro_batches_do_not_change_the_losses(name):
    whole = losses_of_steps(name, 0)
    assert all(whole[0][key] > 0 or whole[0][key] < 0 for key in whole[0])
    for micro_batch_size in (4, 3):
        for one, other in zip(whole, losses_of_steps(name, micro_batch_size), strict=True):
            assert other == pytest.approx(one, rel=1e-10 if is_exact(name) else 1e-6)


@pytest.mark.parametrize("name", recipes_with_rows())
def test_ranks_add_up_to_the_gradient_of_one_process(name):
    expected, loss = gradients_of_step(name)
    assert expected.abs().max() > 0
    for world_size, micro_batch_size in ((2, 0), (2, 2), (3, 0)):
        found, sum_of_losses = gradients_of_step(name, world_size=world_size, micro_batch_size=micro_batch_size)
        exact = is_exact(name)
        torch.testing.assert_close(found, expected, rtol=1e-9 if exact else 1e-4, atol=1e-12 if exact else 1e-7)
        assert sum_of_losses == pytest.approx(loss, rel=1e-9 if exact else 1e-6)


def is_exact(name):
    """Whether the loss is computed in the model's own precision; that of tokens is in float32."""
    return not name.endswith("-lm") and not name.startswith("translate") and name != "markov-source"


@pytest.mark.parametrize("name", sorted(NORMALISED))
def test_what_is_left_out_is_normalised(name):
    recipe = find_recipe(name)
    task = recipe.build(small_options(recipe), DeviceContext())
    assert any(isinstance(each, nn.modules.batchnorm._BatchNorm) for each in task.model.modules())


@pytest.mark.parametrize("batch_size", [1, 2, 5, 8])
@pytest.mark.parametrize("world_size", [1, 2, 3])
@pytest.mark.parametrize("micro_batch_size", [1, 2, 3, 100])
def test_pieces_cover_the_batch_and_every_rank_has_as_many(batch_size, world_size, micro_batch_size):
    samplers = [BatchSampler(12, batch_size, seed=0, rank=rank, world_size=world_size) for rank in range(world_size)]
    for parts in zip(*samplers, strict=True):
        cut = [cut_batch(rows, micro_batch_size, each, world_size) for rows, each in zip(parts, samplers)]
        assert len({len(pieces) for pieces in cut}) == 1
        live = [piece for pieces in cut for piece in pieces if piece.is_live]
        assert torch.equal(torch.cat([piece.rows for piece in live]), samplers[0].batch_rows)
        places = [place for piece in live for place in range(piece.start, piece.stop)]
        assert places == list(range(samplers[0].num_rows_seen))
        for piece in (piece for pieces in cut for piece in pieces):
            assert 1 <= len(piece.rows) <= micro_batch_size
            assert piece.num_rows == samplers[0].num_rows_seen


def test_a_rank_without_rows_adds_nothing():
    task = built("mlp", rank=0, world_size=3)
    task.batches.batch_size = 2
    rows = next(iter(task.batches))
    assert len(rows) == 0
    assert [piece.is_live for piece in task.cut(rows)] == [False]
    task.updater.update = lambda pieces, losses, *, weight: add_gradients(task.updater, pieces, losses, weight)
    assert float(task.step(rows)["loss"]) == 0
    assert all(not each.grad.any() for each in task.model.parameters())


def test_every_gradient_task_is_looked_at():
    """What this file leaves out is on its lists, with why."""
    assert isinstance(built("mlp"), GradientTask)
    named = {getattr(each, "values", (each,))[0] for each in recipes_with_rows()}
    assert set(recipe_names()) >= NORMALISED
    assert set(FAST) <= named


@pytest.mark.parametrize("name", ["mlp", "lenet", "vae", "gan", "diffusion-2d", "lstm-lm", "transformer-lm"])
def test_a_resumed_task_draws_what_it_would_have_drawn(name):
    """To the bit, although torch's own generator stands elsewhere: no dropout layer draws from it."""
    whole, halted, resumed = (built(name) for _ in range(3))
    for task in (halted, resumed):
        if hasattr(task, "evaluator"):  # its state is a classifier that it trains
            task.evaluator = SimpleNamespace(state_dict=dict, load_state_dict=lambda state: None)
    for rows in itertools.islice(whole.batches, 4):
        whole.step(rows)
    for rows in itertools.islice(halted.batches, 2):
        halted.step(rows)
    torch.manual_seed(77)
    resumed.load_state_dict(copy.deepcopy(halted.state_dict()))
    for rows in itertools.islice(resumed.batches, 2):
        resumed.step(rows)
    for one, other in zip(whole.model.parameters(), resumed.model.parameters(), strict=True):
        assert torch.equal(one, other)
