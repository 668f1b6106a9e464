"""The parts of a run of one's own module, made of what `quoin.fit`, `quoin.resume` and `quoin.open_run` are given; and
whether those given again are those that the run was started with."""

import hashlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from quoin.data.example_reading import read_examples, split_off
from quoin.errors import UserError, did_you_mean, format_value
from quoin.optim import Schedule, constant, cosine, one_cycle, step_decay
from quoin.runs.module_options import ModuleOptions
from quoin.runs.module_recipe import ModuleData, ModuleParts
from quoin.tasks.module_objective import OWN_LOSS, ModuleObjective, describe_function, make_objective
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.options import GradientOptions

__all__ = ["check_model", "make_data", "make_schedule", "optimizer_of", "parts_again", "schedule_name"]

SCHEDULES: dict[str, Schedule] = {
    "constant": constant,
    "cosine": cosine,
    "one-cycle": one_cycle,
    "step": step_decay,
}
DEFAULT_LR = {"adagrad": 1e-2, "rmsprop": 1e-2, "adadelta": 1.0, "lion": 1e-4}  # torch's own; of the others 1e-3

OptimizerMaker = Callable[[nn.Module], torch.optim.Optimizer]


def check_model(model: Any) -> None:
    """Raise an error for what cannot be trained or saved."""
    if not isinstance(model, nn.Module):
        raise UserError(f"expected a torch.nn.Module to train, got {type(model).__name__}: give an instance of one")
    if not any(each.requires_grad for each in model.parameters()):
        has = "only frozen parameters" if any(True for _ in model.parameters()) else "none"
        raise UserError(f"expected a model with parameters to train, got {has} in {type(model).__name__}: add some")
    if strange := [name for name, each in model.state_dict().items() if not isinstance(each, torch.Tensor)]:
        raise UserError(f"expected a state_dict of tensors, got {strange[0]!r} that is none: leave out extra state")


def dtype_of(model: nn.Module) -> torch.dtype:
    """That of its first floating-point parameter."""
    return next((each.dtype for each in model.parameters() if each.is_floating_point()), torch.float32)


def make_data(
    model: nn.Module,
    data: Any,
    *,
    target: str | Sequence[str] | None,
    whole: bool,
    validation: Any,
    test: Any,
    seed: int,
) -> ModuleData:
    """The splits: validation is a fraction of the data, or data of its own as test is."""
    dtype = dtype_of(model)
    read = read_examples(data, target=target, whole=whole, dtype=dtype)
    splits = {"train": read.examples, **read.splits}
    if isinstance(validation, (int, float)) and not isinstance(validation, bool):
        if not 0 <= validation < 1:
            raise UserError(f"expected validation= as a fraction from 0 to 1 or as data, got {validation}")
        if validation and "validation" in splits:
            raise UserError(f"{read.examples.source} has validation examples of its own: leave validation= out")
        if validation:
            splits["train"], splits["validation"] = split_off(read.examples, validation, seed)
        validation = None
    for split, given in (("validation", validation), ("test", test)):
        if given is not None:
            splits[split] = read_examples(
                given,
                target=target,
                whole=whole,
                dtype=dtype,
                feature_names=read.feature_names,
                class_names=read.class_names,
            ).examples
    parts = [
        read.examples.fingerprint(),
        *(f"{name} {splits[name].fingerprint()}" for name in splits if name != "train"),
    ]
    return ModuleData(splits, read, hashlib.sha256("; ".join(parts).encode()).hexdigest())


def optimizer_of(
    optimizer: str | torch.optim.Optimizer | Callable[..., torch.optim.Optimizer], lr: float | None, weight_decay: float
) -> OptimizerMaker:
    """What makes the optimizer of a model: by name, from a function of the parameters, or the one given."""
    if isinstance(optimizer, str):
        options = GradientOptions(  # checks the name and the numbers
            optimizer=optimizer,  # type: ignore[arg-type]
            lr=DEFAULT_LR.get(optimizer, 1e-3) if lr is None else lr,
            weight_decay=weight_decay,
        )
        return lambda model: make_optimizer([each for each in model.parameters() if each.requires_grad], options)
    if lr is not None or weight_decay:
        name = "weight_decay" if lr is None else "lr"
        raise UserError(f"{name}= is for an optimizer by name; set it in the optimizer that you give, and leave it out")
    return lambda model: _checked(optimizer, model)


def _checked(optimizer: Any, model: nn.Module) -> torch.optim.Optimizer:
    if not isinstance(optimizer, torch.optim.Optimizer):
        if not callable(optimizer):
            raise UserError(
                f"expected optimizer= as a torch Optimizer, a function of the parameters or a name, got "
                f"{type(optimizer).__name__}: give one of these"
            )
        optimizer = optimizer([each for each in model.parameters() if each.requires_grad])
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise UserError(f"expected a torch Optimizer of optimizer=, got {type(optimizer).__name__}: return one")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise UserError(
            "LBFGS evaluates the loss several times a step, and a run does so once: choose another optimizer"
        )
    own = {id(each) for each in model.parameters()}
    if strange := sum(id(each) not in own for group in optimizer.param_groups for each in group["params"]):
        raise UserError(
            f"expected an optimizer over the model's parameters, got one with {strange} others: make it of "
            "model.parameters(), after the last change of the model"
        )
    return optimizer


def schedule_name(schedule: Any) -> str:
    """What a run records of its schedule."""
    return schedule if isinstance(schedule, str) else describe_function(schedule)


def make_schedule(schedule: str | Schedule) -> Schedule:
    """A schedule by name, or the function given: the factor of the learning rate by the fraction that is done."""
    if callable(schedule):
        return schedule
    if not isinstance(schedule, str) or schedule not in SCHEDULES:
        raise UserError(
            f"schedule={format_value(schedule)}: {did_you_mean(str(schedule), SCHEDULES)}, or give a function"
        )
    return SCHEDULES[schedule]


def parts_again(
    options: ModuleOptions,
    model: nn.Module,
    *,
    data: Any,
    loss: Any,
    optimizer: Any,
    schedule: Any,
    metrics: Any,
    validation: Any,
    test: Any,
    is_resumed: bool,
) -> ModuleParts:
    """The parts of a run that was begun. What it records by name is found again; functions must be given again, and
    be of the same name.

    Args:
        is_resumed: Whether all are needed; to open a run, those suffice that are there.
    """
    check_model(model)
    functions = {"loss": (options.loss, loss), "optimizer": (options.optimizer, optimizer)}
    functions["schedule"] = (options.schedule, schedule)
    if is_resumed:
        for name, (recorded, given) in functions.items():
            if recorded.endswith(")") and given is None:
                raise UserError(
                    f"the run was started with {name}={recorded}, which it cannot store: give {name}= again"
                )
        if any(": " in each for each in options.metrics) and metrics is None:
            raise UserError(f"the run was started with metrics {', '.join(options.metrics)}: give metrics= again")
        if missing := [each for each, given in (("validation", validation), ("test", test)) if given is None]:
            for each in missing:
                if each in options.given_splits:
                    raise UserError(f"the run was started with {each} data of its own: give {each}= again")
    objective = _objective_again(options, loss, metrics)
    made = None
    if data is not None and objective is not None:
        target = options.target[0] if len(options.target) == 1 else options.target or None
        held_out = options.validation if validation is None else validation
        made = make_data(
            model,
            data,
            target=target,
            whole=objective.loss is None,
            validation=held_out,
            test=test,
            seed=options.seed,
        )
    return ModuleParts(
        model,
        made,
        objective,
        _optimizer_again(options, optimizer),
        make_schedule(schedule or _known(options.schedule)),
    )


def _known(schedule: str) -> str:
    return (
        schedule if schedule in SCHEDULES else "constant"
    )  # a function that was not given: only to look, not to train


def _objective_again(options: ModuleOptions, loss: Any, metrics: Any) -> ModuleObjective | None:
    """The objective that the run records, if what it needs is there."""
    if options.loss == OWN_LOSS:
        given = None
    elif options.loss.endswith(")"):
        if loss is None:
            return None
        given = loss
    else:
        given = options.loss
    if metrics is None and any(": " in each for each in options.metrics):
        return None
    found = make_objective(given, {} if metrics is None and not options.metrics else metrics, None)
    for name, recorded, now in (
        ("loss", options.loss, found.loss_name),
        ("metrics", options.metrics, found.metric_names),
    ):
        if recorded != now:
            raise UserError(f"the run was started with {name}={recorded}, got {now}: give what it was started with")
    return found


def _optimizer_again(options: ModuleOptions, optimizer: Any) -> OptimizerMaker:
    by_name = not options.optimizer.endswith(")")
    first = optimizer_of(options.optimizer, options.lr[0], options.weight_decay) if by_name else None
    return lambda model: _with_lrs(first(model) if first else _again(options, optimizer, model), options)


class _NoOptimizer(torch.optim.SGD):
    """In the place of an optimizer that was not given again: to look at a run takes no step."""

    def load_state_dict(self, state_dict: Any) -> None:
        pass


def _again(options: ModuleOptions, optimizer: Any, model: nn.Module) -> torch.optim.Optimizer:
    if optimizer is None:
        return _NoOptimizer([each for each in model.parameters() if each.requires_grad])
    made = _checked(optimizer, model)
    if f"{type(made).__name__}()" != options.optimizer or len(made.param_groups) != len(options.lr):
        groups = f" of {len(options.lr)} parameter groups" if len(made.param_groups) != len(options.lr) else ""
        raise UserError(
            f"the run was started with optimizer={options.optimizer}{groups}, got {type(made).__name__}() of "
            f"{len(made.param_groups)}: give the same"
        )
    return made


def _with_lrs(made: torch.optim.Optimizer, options: ModuleOptions) -> torch.optim.Optimizer:
    """The learning rates the run began with: those of an optimizer that was used before are where its schedule left
    them."""
    for group, lr in zip(made.param_groups, options.lr):
        group["lr"] = lr
    return made
