"""--optimizer: each of its names runs the update rule of quoin.optim, every recipe that follows a gradient takes each,
and a killed run goes on to the same bits."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from near import assert_near
from quoin.errors import UserError
from quoin.losses import cross_entropy
from quoin.models import MLP
from quoin.optim import (
    Adadelta,
    AdaGrad,
    Adam,
    AdamW,
    GradientDescent,
    Lion,
    LionOptimizer,
    Momentum,
    Nesterov,
    RMSProp,
)
from quoin.options import choices_of
from quoin.runs import find_recipe, recipe_names
from quoin.tasks import Classification, make_optimizer, weight_decay_groups
from quoin.tasks.options import GradientOptions, OptimizerName
from quoin.tasks.sequence_options import SequenceOptions
from quoin.train import DeviceContext
from tasks import Crash, difference, left_behind, new_folder, numbers_dataset, parted, run_loop

pytestmark = pytest.mark.usefixtures("one_thread")

NAMES: tuple[Any, ...] = choices_of(OptimizerName)
DECOUPLED = {"adamw", "lion"}
# The rule of each name by learning rate and weight decay: with torch's defaults, and with other parameters.
RULES: dict[OptimizerName, Callable[[float, float], Any]] = {
    "sgd": lambda lr, decay: GradientDescent(lr),
    "momentum": lambda lr, decay: Momentum(lr, 0.9),
    "nesterov": lambda lr, decay: Nesterov(lr, 0.9),
    "adagrad": lambda lr, decay: AdaGrad(lr),
    "rmsprop": lambda lr, decay: RMSProp(lr),
    "adadelta": lambda lr, decay: Adadelta(lr),
    "adam": lambda lr, decay: Adam(lr),
    "adamw": lambda lr, decay: AdamW(lr, weight_decay=decay),
    "lion": lambda lr, decay: Lion(lr, weight_decay=decay),
}
OTHERS: dict[OptimizerName, tuple[dict[str, float], Callable[[float, float], Any]]] = {
    "momentum": ({"momentum": 0.6}, lambda lr, decay: Momentum(lr, 0.6)),
    "nesterov": ({"momentum": 0.6}, lambda lr, decay: Nesterov(lr, 0.6)),
    "rmsprop": ({"alpha": 0.7}, lambda lr, decay: RMSProp(lr, 0.7)),
    "adadelta": ({"rho": 0.7}, lambda lr, decay: Adadelta(lr, 0.7)),
    "adam": ({"beta1": 0.6, "beta2": 0.7}, lambda lr, decay: Adam(lr, 0.6, 0.7)),
    "adamw": ({"beta1": 0.6, "beta2": 0.7}, lambda lr, decay: AdamW(lr, 0.6, 0.7, weight_decay=decay)),
    "lion": ({"beta1": 0.6, "beta2": 0.7}, lambda lr, decay: Lion(lr, 0.6, 0.7, decay)),
}
TOLERANCE = {torch.float32: 3e-5, torch.float64: 5e-14}


def paths(options: GradientOptions, rule: Any, dtype: torch.dtype, seed: int) -> tuple[Tensor, Tensor]:
    """Ten steps of the optimizer and of the rule down one random quadratic, each by the gradients at its own points."""
    generator = torch.Generator().manual_seed(seed)
    root, best, x = (torch.randn(size, generator=generator, dtype=dtype) for size in ((5, 5), (5,), (5,)))
    matrix, weight = root @ root.mT / 5, torch.nn.Parameter(x.clone())
    optimizer, state = make_optimizer([weight], options), rule.init(x)
    coupled = 0.0 if options.optimizer in DECOUPLED else options.weight_decay
    ours, theirs = [], []
    for _ in range(10):
        weight.grad = matrix @ (weight.detach() - best)
        optimizer.step()
        x, state = rule.step(x, matrix @ (x - best) + coupled * x, state)
        ours.append(weight.detach().clone())
        theirs.append(x)
    return torch.stack(ours), torch.stack(theirs)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("decay", [0.0, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_runs_its_rule(name, decay, dtype):
    given, other_rule = OTHERS.get(name, ({}, RULES[name]))
    own, other = (GradientOptions(optimizer=name, lr=0.3, weight_decay=decay, **each) for each in ({}, given))
    differ = False
    for seed in range(3):
        found = paths(own, RULES[name](0.3, decay), dtype, seed)
        others = paths(other, other_rule(0.3, decay), dtype, seed)
        assert_near(*found, TOLERANCE)
        assert_near(*others, TOLERANCE)
        differ |= not torch.equal(found[0], others[0])  # Lion, by signs, goes the same way for a while
    assert differ == bool(given)


def test_names_are_told_apart():
    """Else a table that repeats a mistake of the code would pass."""
    options = [GradientOptions(optimizer=name, lr=0.1, weight_decay=0.3) for name in NAMES]
    ends = [paths(each, RULES[each.optimizer](0.1, 0.3), torch.float64, 0)[0][-1] for each in options]
    assert len({tuple(end.tolist()) for end in ends}) == len(NAMES) == 9


def test_without_momentum_nesterov_is_sgd():
    found = paths(GradientOptions(optimizer="nesterov", momentum=0.0), GradientDescent(0.1), torch.float64, 0)
    assert_near(*found, TOLERANCE)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_of_other_optimizers_are_refused(name):
    parameters = {"momentum": ("momentum", "nesterov"), "alpha": ("rmsprop",), "rho": ("adadelta",)}
    parameters |= dict.fromkeys(("beta1", "beta2"), ("adam", "adamw", "lion"))
    for parameter, having in parameters.items():
        if name in having:
            assert getattr(GradientOptions(optimizer=name, **{parameter: 0.5}), parameter) == 0.5
            continue
        with pytest.raises(UserError, match=f"^--{parameter} is of --optimizer {having[0]}.*got {name}: ") as told:
            GradientOptions(optimizer=name, **{parameter: 0.5})
        assert "\n" not in str(told.value)
    SequenceOptions(optimizer=name)  # a recipe's own default, not the user's wish
    with pytest.raises(UserError, match="--optimizer is 'lino': did you mean 'lion'"):
        GradientOptions(optimizer="lino")  # pyright: ignore[reportArgumentType]


def test_biases_have_no_weight_decay():
    model = MLP([3, 5, 3], generator=torch.Generator().manual_seed(0))
    for name in NAMES:
        options = GradientOptions(optimizer=name, lr=0.1, weight_decay=0.3)
        decayed, free = make_optimizer(weight_decay_groups(model, options), options).param_groups
        assert (decayed["weight_decay"], free["weight_decay"]) == (0.3, 0.0)
        assert {each.ndim for each in decayed["params"]} == {2}
        assert {each.ndim for each in free["params"]} == {1}


def test_another_optimizer_than_the_recipes_own_is_fused():
    weight = [torch.nn.Parameter(torch.zeros(2))]
    for name in ("momentum", "nesterov", "adam", "adamw"):
        assert make_optimizer(weight, GradientOptions(optimizer=name)).param_groups[0]["fused"]
    assert not make_optimizer(weight, GradientOptions()).param_groups[0]["fused"]
    assert make_optimizer(weight, GradientOptions(), fused=True).param_groups[0]["fused"]


# ---- recipes ----------------------------------------------------------------------------------------------------

CLASSES: dict[OptimizerName, type[torch.optim.Optimizer]] = {
    "sgd": torch.optim.SGD,
    "momentum": torch.optim.SGD,
    "nesterov": torch.optim.SGD,
    "adagrad": torch.optim.Adagrad,
    "rmsprop": torch.optim.RMSprop,
    "adadelta": torch.optim.Adadelta,
    "adam": torch.optim.Adam,
    "adamw": torch.optim.AdamW,
    "lion": LionOptimizer,
}
# Recipes that train by gradients and have no --optimizer.
WITHOUT = {
    "cross-entropy-descent": "a theorem about gradient descent, by the notes' own rule",
    "gd-bound": "bounds on gradient descent, by the notes' own rule",
    "momentum-phase": "the phases of momentum: its rule is the subject",
    "optimizer-race": "runs six of them",
}
NO_GRADIENT = {"gmm", "hmm", "markov-chain", "nadaraya-watson", "ngram", "polynomial-fit", "random-features"}
SMALL = {"num_pairs": 50, "num_texts": 50, "num_rows": 40, "sequence_length": 10_000}
QUICK = {"gan", "lenet", "mlp", "ppca", "ridge", "transformer-lm"}  # the others take "lion" alone, and all of them deep
FOLLOWING = [name for name in recipe_names() if issubclass(find_recipe(name).options, GradientOptions)]


def test_recipes_have_an_optimizer_or_a_reason():
    assert set(recipe_names()) == set(FOLLOWING) | WITHOUT.keys() | NO_GRADIENT


def built(recipe: str, optimizer: OptimizerName, monkeypatch: pytest.MonkeyPatch) -> list[torch.optim.Optimizer]:
    """All optimizers that the recipe makes for its task; L-BFGS solves for what a task is compared with."""
    made, init = [], torch.optim.Optimizer.__init__

    def note(self: torch.optim.Optimizer, *given: Any) -> None:
        init(self, *given)
        made.append(self)

    kind: Any = find_recipe(recipe).options
    defaults: dict[str, Any] = {each.name: each.default for each in dataclasses.fields(kind)}
    small = {name: min(size, defaults[name]) for name, size in SMALL.items() if isinstance(defaults.get(name), int)}
    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.Optimizer, "__init__", note)
        find_recipe(recipe).build(kind(optimizer=optimizer, lr=0.0123, weight_decay=0.3, **small), DeviceContext())
    return [each for each in made if not isinstance(each, torch.optim.LBFGS)]


def check_built(recipe: str, name: OptimizerName, monkeypatch: pytest.MonkeyPatch) -> None:
    kind: Any = find_recipe(recipe).options
    options = kind(optimizer=name)
    beta2 = 0.99 if name == "lion" else 0.999
    expected = {
        "momentum": {"momentum": 0.9, "nesterov": False},
        "nesterov": {"momentum": 0.9, "nesterov": True},
        "rmsprop": {"alpha": 0.99},
        "adadelta": {"rho": 0.9},
    } | {each: {"betas": (options.beta1 or 0.9, options.beta2 or beta2)} for each in ("adam", "adamw", "lion")}
    made = built(recipe, name, monkeypatch)
    assert made
    for each in made:
        assert type(each) is CLASSES[name]
        for group in each.param_groups:
            assert group["lr"] == 0.0123
            assert group["weight_decay"] in (0.0, 0.3)
            assert {key: group[key] for key in expected.get(name, {})} == expected.get(name, {})
    assert any(group["weight_decay"] == 0.3 for group in made[0].param_groups)


@pytest.mark.parametrize("recipe", FOLLOWING)
def test_a_recipe_takes_another_optimizer(recipe, monkeypatch):
    check_built(recipe, "lion", monkeypatch)


@pytest.mark.parametrize("recipe", [pytest.param(r, marks=[] if r in QUICK else pytest.mark.deep) for r in FOLLOWING])
def test_a_recipe_takes_every_optimizer(recipe, monkeypatch):
    for name in NAMES:
        check_built(recipe, name, monkeypatch)


# ---- killed runs ------------------------------------------------------------------------------------------------


def classification(name: OptimizerName, *, dies_at: int = -1) -> Classification:
    model = MLP([3, 5, 3], generator=torch.Generator().manual_seed(7))
    optimizer = make_optimizer(model.parameters(), GradientOptions(optimizer=name, lr=0.05, weight_decay=0.1))
    data = parted(numbers_dataset(classes=3), 20, 5)
    task = Classification(
        model, cross_entropy, optimizer, data, batch_size=8, epochs=3, seed=0, device_context=DeviceContext()
    )
    step, count = task.step, 0

    def fatal_step(rows: Tensor) -> dict[str, Tensor]:
        nonlocal count
        sums, count = step(rows), count + 1
        if count == dies_at:
            raise Crash
        return sums

    task.step = fatal_step
    return task


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_run_goes_on_to_the_same_bits(name, tmp_path):
    run = new_folder(tmp_path / "whole")
    run_loop(classification(name), run, checkpoint_every=2)
    whole = left_behind(run)
    for step in (1, 5, 8):
        run = new_folder(tmp_path / f"killed at {step}")
        with pytest.raises(Crash):
            run_loop(classification(name, dies_at=step), run, checkpoint_every=2)
        run_loop(classification(name), run, resume=True, checkpoint_every=2)
        assert difference(whole, left_behind(run)) is None
