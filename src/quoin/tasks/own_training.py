"""The user's own optimizer, learning-rate schedule, loss, activation and norm, FILE.py:NAME, each tried before a run.

my_optimizer(parameters, lr=..., weight_decay=...) -> torch.optim.Optimizer   a class or a function
my_schedule(progress) -> factor of the learning rate                          progress from 0 to 1
my_loss(outputs, targets) -> a loss for each example, or their mean            a function, or a class of nn.Module
MyActivation() -> nn.Module, or my_activation(x) -> tensor of x's shape
MyNorm(num_features) -> nn.Module of tensors (examples, num_features)
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn, optim

from quoin.callbacks import current_listener
from quoin.data import keyed_generator
from quoin.errors import UserError, format_value
from quoin.optim import Schedule
from quoin.tasks.own_parts import OwnCallable, check_output, load_callable, make_with, own_seed, parameters_of
from quoin.train.state import flatten_state, unflatten_state

__all__ = ["OwnLoss", "own_activation", "own_loss", "own_norm", "own_optimizer", "own_schedule"]

_OPTIMIZER = "an optimizer, a class or function of (parameters, lr=...) that gives a torch.optim.Optimizer"
_SCHEDULE = "a schedule, a function of the fraction of the run that is done that gives a factor of the learning rate"
_LOSS = "a loss, a function of (outputs, targets) that gives a loss for each example, or their mean"
_ACTIVATION = (
    "an activation, a class of nn.Module made without arguments, or a function of a tensor to one of its shape"
)
_NORM = "a norm, a class of nn.Module made with the number of features, of tensors (examples, features)"
_TRIED = 101  # fractions of a run at which a schedule is tried
_TRIED_LR = 0.01  # with which an optimizer is tried: a step is seen whatever the run's is


def own_optimizer(
    reference: str,
    parameters: Iterable[Float[Tensor, "..."]] | Iterable[dict[str, Any]],
    *,
    lr: float,
    weight_decay: float,
    asked_weight_decay: bool,
) -> optim.Optimizer:
    """The user's optimizer of these parameters, after it has stepped, saved and loaded on a few numbers.

    Args:
        asked_weight_decay: Whether the user gave the weight decay: one that the optimizer does not take is then
            refused, and where it is the recipe's default told.
    """
    own = load_callable(reference, _OPTIMIZER)
    named: dict[str, Any] = {"lr": lr}
    if own.takes("weight_decay"):
        named["weight_decay"] = weight_decay
    elif weight_decay and asked_weight_decay:
        raise UserError(
            f"--weight-decay {weight_decay}: {reference} takes no weight_decay; leave the flag out, or add "
            "weight_decay=0.0 to its arguments"
        )
    elif weight_decay:
        current_listener().say(f"{reference} takes no weight_decay: the recipe's {weight_decay} is not applied")
    if not own.takes("lr"):
        raise own.wrong("one that takes no lr")
    groups: list[Any] = list(parameters)
    _try_optimizer(own, groups, named)
    return _made(own, groups, named)


def _made(own: OwnCallable, groups: list[Any], named: dict[str, Any]) -> optim.Optimizer:
    with own.told():
        made = own.call(groups, **named)
    if not isinstance(made, optim.Optimizer):
        raise own.wrong(f"{type(made).__name__}, which is no torch.optim.Optimizer")
    given = {id(each) for group in groups for each in (group["params"] if isinstance(group, dict) else [group])}
    if given != {id(each) for group in made.param_groups for each in group["params"]}:
        raise own.refused("does not hold just the parameters that it is given: put all of them into its param_groups")
    if not all("lr" in group for group in made.param_groups):
        raise own.refused("has param_groups without lr, which the schedule moves: give them one")
    return made


def _try_optimizer(own: OwnCallable, groups: list[Any], named: dict[str, Any]) -> None:
    """On a tensor of two entries along each axis for every number of axes that there is: two steps, saved and loaded
    between them, end where two steps on end."""
    axes = {each.ndim for group in groups for each in (group["params"] if isinstance(group, dict) else [group])}
    draw, named = keyed_generator("tried"), named | {"lr": _TRIED_LR}
    start, gradient = ([torch.randn((2,) * n, generator=draw) for n in sorted(axes)] for _ in range(2))

    def begun() -> tuple[list[nn.Parameter], optim.Optimizer]:
        weights = [nn.Parameter(each.clone()) for each in start]
        return weights, _made(own, [{"params": weights}] if isinstance(groups[0], dict) else list(weights), named)

    def step(weights: list[nn.Parameter], optimizer: optim.Optimizer) -> None:
        for each, its in zip(weights, gradient, strict=True):
            each.grad = its.clone()
        with own.told(), own_seed(0):
            optimizer.step()

    weights, optimizer = begun()
    step(weights, optimizer)
    with own.told():
        state = optimizer.state_dict()
    try:
        skeleton, tensors = flatten_state(state)
    except TypeError as error:
        raise own.refused(f"has a state that no checkpoint holds: {error}") from error
    # a checkpoint holds what they are now, and this optimizer goes on to change them
    saved = unflatten_state(skeleton, {name: tensor.clone() for name, tensor in tensors.items()})
    again, resumed = begun()
    with torch.no_grad():
        for each, its in zip(again, weights, strict=True):
            each.copy_(its)
    with own.told():
        resumed.load_state_dict(saved)
    step(weights, optimizer)
    step(again, resumed)
    if all(torch.equal(each, its) for each, its in zip(weights, start, strict=True)):
        raise own.refused("moves nothing in two steps: change the parameters in place")
    if not all(each.isfinite().all() for each in weights):
        raise own.refused("makes numbers that are not finite in two steps: mend it")
    if not all(torch.equal(each, its) for each, its in zip(weights, again, strict=True)):
        raise own.refused("goes on otherwise after load_state_dict: keep what changes in self.state or param_groups")


def own_schedule(reference: str) -> Schedule:
    """The user's schedule, tried from the beginning of a run to its end."""
    own = load_callable(reference, _SCHEDULE)

    def factor(progress: float) -> float:
        with own.told():
            found = own.call(progress)
        try:
            number = float(found)
        except (TypeError, ValueError):
            raise own.wrong(f"{format_value(found)} at progress {progress:g}, which is no number") from None
        if not math.isfinite(number) or number < 0:
            raise own.refused(f"gives {number:g} at progress {progress:g}: a factor must be finite, and 0 or more")
        return number

    progresses = [number / (_TRIED - 1) for number in range(_TRIED)]
    factors = [factor(progress) for progress in progresses]
    if not any(factors):
        raise own.refused("gives 0 from beginning to end, with which nothing is learnt: give a factor of --lr")
    if other := [each for each, its in zip(progresses, factors, strict=True) if factor(each) != its]:
        raise own.refused(f"gives two factors at progress {other[0]:g}: make it a function of progress alone")
    return factor


class OwnLoss:
    """The user's loss: one value for each example; a mean over them stands for each."""

    def __init__(self, own: OwnCallable, loss_fn: Callable[[Tensor, Tensor], Tensor]) -> None:
        self.own, self.loss_fn = own, loss_fn

    def __call__(
        self, outputs: Float[Tensor, "batch ..."], targets: Real[Tensor, "batch ..."]
    ) -> Float[Tensor, "batch"]:
        found = self.loss_fn(outputs.float(), targets)  # under autocast the outputs may be less
        return found.expand(len(targets)) if found.ndim == 0 else found


def own_loss(reference: str, outputs: Float[Tensor, "batch ..."], targets: Real[Tensor, "batch ..."]) -> OwnLoss:
    """The user's loss, tried on a model's outputs for a few training examples."""
    own = load_callable(reference, _LOSS)
    loss_fn = own.call
    if isinstance(own.call, type):
        loss_fn = make_with(own, {})
        if any(True for _ in loss_fn.parameters()):
            raise own.refused("has parameters of its own, which no optimizer moves: put them into a model")
        loss_fn = loss_fn.to(outputs.device)
    elif not own.binds(outputs, targets):
        raise own.wrong(f"a function of ({', '.join(parameters_of(own.call))})")
    outputs = outputs.detach().float().requires_grad_()
    with own_seed(0), own.told():
        found = loss_fn(outputs, targets)
    shape = tuple(found.shape) if isinstance(found, Tensor) and found.ndim == 0 else (len(targets),)
    called = f"outputs {tuple(outputs.shape)} and targets {tuple(targets.shape)}"
    losses = check_output(own, found, shape, called)
    with own.told():
        (gradient,) = torch.autograd.grad(losses.sum(), outputs, allow_unused=True)
    if gradient is None or not gradient.isfinite().all():
        what = "no" if gradient is None else "no finite"
        raise own.refused(f"has {what} gradient for {called}: compute it from the outputs")
    if losses.ndim == 0 and len(targets) > 1:
        _check_mean(own, loss_fn, outputs, targets, float(losses.detach()))
    return OwnLoss(own, loss_fn)


@torch.no_grad()
def _check_mean(
    own: OwnCallable, loss_fn: Callable[[Tensor, Tensor], Tensor], outputs: Tensor, targets: Tensor, whole: float
) -> None:
    """One number for a batch is taken for the mean of its examples; a sum is not."""
    with own_seed(0), own.told():
        each = [float(loss_fn(outputs[row : row + 1], targets[row : row + 1])) for row in range(len(targets))]
    if math.isclose(whole, sum(each), rel_tol=1e-4, abs_tol=1e-6) and abs(whole) > 1e-6:
        raise own.refused("gives the sum over the examples: give a loss for each (reduction='none'), or their mean")
    if not math.isclose(whole, sum(each) / len(each), rel_tol=1e-3, abs_tol=1e-5):
        current_listener().say(
            f"{own.reference} gives one number for a batch, and not the mean over its examples: losses of validation "
            "and test depend on how they are cut into batches"
        )


def own_activation(reference: str) -> Callable[[], nn.Module]:
    """Makes the user's activation of one layer after another."""
    own = load_callable(reference, _ACTIVATION)

    def make() -> nn.Module:
        return make_with(own, {}) if isinstance(own.call, type) else FunctionActivation(own.call)

    _try_layer(own, make(), 4)
    return make


def own_norm(reference: str) -> Callable[[int], nn.Module]:
    """Makes the user's norm of so many features."""
    own = load_callable(reference, _NORM)

    def make(num_features: int) -> nn.Module:
        if not isinstance(own.call, type) or not issubclass(own.call, nn.Module) or not own.binds(num_features):
            raise own.wrong("one that cannot be made with a number of features")
        with own.told():
            return own.call(num_features)

    _try_layer(own, make(4), 4)
    return make


def _try_layer(own: OwnCallable, layer: nn.Module, num_features: int) -> None:
    x = torch.randn(5, num_features, generator=keyed_generator("tried"), requires_grad=True)
    with own_seed(0), own.told():
        found = layer(x)
    check_output(own, found, tuple(x.shape), f"a tensor of shape {tuple(x.shape)}")


class FunctionActivation(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.function(x)

    def extra_repr(self) -> str:
        return getattr(self.function, "__name__", "")
