"""`quoin.fit`, `quoin.resume` and `quoin.open_run`: a module of one's own, trained into a run folder as a recipe is.

Here is what a call says; what it is made of is in module_parts.py and module_recipe.py, the loop in fit.py.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from torch import Tensor, nn
from torch.optim import Optimizer

from quoin.data.examples import StreamExamples
from quoin.errors import UserError, format_value
from quoin.options import options_from_json
from quoin.runs.fit import RunResult, fit_recipe, resume_run
from quoin.runs.module_options import ModuleOptions
from quoin.runs.module_parts import check_model, make_data, make_schedule, optimizer_of, parts_again, schedule_name
from quoin.runs.module_recipe import ModuleData, ModuleParts, module_recipe, recipe_name
from quoin.runs.run import Run
from quoin.runs.run_code import NO_CODE, CodeAccess
from quoin.runs.run_config import RunConfig
from quoin.runs.run_label import RunLabel
from quoin.tasks.host_generators import own_generators
from quoin.tasks.module_objective import make_objective
from quoin.train import Callback, Logger, Progress, RunFolder, torch_as_it_was
from quoin.train.checkpoint import checkpoint_steps

__all__ = ["fit", "open_run", "resume"]

Metric = Callable[[Any, Any], Any]


def fit(
    model: nn.Module,
    data: Any,
    *,
    loss: str | Callable[[Any, Any], Tensor] | None = "auto",
    optimizer: str | Optimizer | Callable[..., Optimizer] = "adamw",
    lr: float | None = None,
    weight_decay: float = 0.0,
    schedule: str | Callable[[float], float] = "constant",
    epochs: int = 10,
    batch_size: int | None = None,
    micro_batch_size: int = 0,
    max_grad_norm: float = 0.0,
    metrics: Mapping[str, Metric] | None = None,
    target: str | Sequence[str] | None = None,
    validation: Any = None,
    test: Any = None,
    monitor: str = "",
    mode: Literal["auto", "min", "max"] = "auto",
    patience: int = 0,
    seed: int = 0,
    device: str = "auto",
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    compile: bool = False,
    deterministic: bool = False,
    num_threads: int = 0,
    checkpoint_every: int = 0,
    max_steps: int = 0,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    runs: str | Path = "runs",
    name: str = "",
    note: str = "",
    tags: Sequence[str] = (),
    show_progress: bool = True,
) -> Run:
    """Train `model` in place, from the weights it has, in a run folder of its own; afterwards it holds the best weights
    by `monitor`, and is in evaluation mode.

    An example's inputs are a tensor, a tuple or a dict of them, and the model is called as `model(x)`, `model(*xs)` or
    `model(**xs)`. The run is interrupted by Ctrl-C and goes on with `quoin.resume`: killed at any moment, to the same
    bits on the CPU. Torch's, NumPy's and Python's random generators are functions of the seed inside, and afterwards as
    they were.

    Args:
        data: (inputs, targets) as arrays or tensors; a data frame, with `target`; a Quoin `Dataset`; a torch `Dataset`
            or `DataLoader` whose examples are pairs, tuples with the target last, or dicts with `target`.
            Floating-point arrays become the model's dtype; tensors stay as they are. Of a DataLoader with a sampler of
            its own the order is not ours, and a resumed run has other bits.
        loss: A function of (outputs, targets) that gives one value per example, or a number, which counts as the mean
            of its batch; "cross_entropy" or "mse". "auto" takes the first for integer targets, the second for
            floating-point ones. None for a model that computes its own: it is given the whole example, the target too,
            and its output is the loss or has it as `loss`.
        optimizer: A torch Optimizer over the model's parameters, a function that makes one of them, or a name: sgd,
            momentum, nesterov, adagrad, rmsprop, adadelta, adam, adamw, lion.
        lr: Peak learning rate of an optimizer by name; torch's default unless given, as 1e-3 for adamw.
        schedule: constant, cosine, one-cycle or step, or a function: the factor of the learning rate by the fraction of
            the run that is done.
        batch_size: Examples per step; unless given that of the DataLoader, or 32.
        micro_batch_size: Rows of one forward pass, to save memory: gradients are accumulated; 0 for the whole batch.
        max_grad_norm: Gradient clipping; 0 for none.
        metrics: Functions of (outputs, targets) by name; one value per example, of which the mean is exact, or a number
            for each batch. Unless given, the accuracy under "cross_entropy".
        target: The target column of a data frame (several for several outputs), or the target's name in a dict.
        validation: A fraction of the data, sampled by the seed, or data of its own.
        test: Data that are only evaluated, at the end.
        monitor: The metric that decides which weights are kept; validation_loss where there is validation data, else
            the last weights are kept.
        mode: Whether that metric should be low or high, where its name does not say.
        patience: Early stopping: epochs without improvement; 0 for none.
        checkpoint_every: Steps between checkpoints; 0 spends about 3% of the time on them.
        callbacks: Functions of a `RunEvent`, told of every step, epoch and checkpoint.
        loggers: Each is handed scalars, images, texts and the options, as `--log` writes them to files.
        runs: The folder of runs; in it the run is called `name`, or by its model's class and a number.

    >>> import tempfile, torch
    >>> inputs = torch.linspace(-1, 1, 64)[:, None]
    >>> model = torch.nn.Linear(1, 1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = fit(model, (inputs, 2 * inputs + 1), optimizer="sgd", lr=0.2, epochs=30, runs=folder,
    ...               num_threads=1, show_progress=False)
    >>> round(model.weight.item(), 2), round(model.bias.item(), 2)
    (2.0, 1.0)
    >>> run.metrics["train_loss"] < 1e-4, run.predict(torch.tensor([[3.0]])).round()
    (True, tensor([[7.]]))
    """
    with _as_arguments():
        check_model(model)
        _check_lists(callbacks, tags)
        whole = loss is None
        made = make_data(model, data, target=target, whole=whole, validation=validation, test=test, seed=seed)
        objective = make_objective(loss, metrics, made.splits["train"].first(1).targets)
        with_optimizer = optimizer_of(optimizer, lr, weight_decay)(model)
        if patience and not monitor and "validation" not in made.splits:
            raise UserError(
                f"patience={patience} waits for validation_loss, and there are no validation data: give validation=, "
                "or monitor='train_loss'"
            )
        fraction = isinstance(validation, (int, float))
        options = ModuleOptions(
            seed=seed,
            patience=patience,
            monitor=monitor,
            epochs=epochs,
            model=type(model).__name__,
            num_parameters=_num_parameters(model),
            loss=objective.loss_name,
            metrics=objective.metric_names,
            optimizer=optimizer if isinstance(optimizer, str) else f"{type(with_optimizer).__name__}()",
            lr=tuple(float(group["lr"]) for group in with_optimizer.param_groups),
            weight_decay=weight_decay,
            schedule=schedule_name(schedule),
            batch_size=_batch_size(batch_size, made),
            micro_batch_size=micro_batch_size,
            max_grad_norm=max_grad_norm,
            mode=mode,
            target=() if target is None else (target,) if isinstance(target, str) else tuple(target),
            validation=float(validation) if fraction else 0.0,
            given_splits=_given(None if fraction else validation, test),
        )
        config = RunConfig(
            device=device,
            num_threads=num_threads,
            precision=precision,
            compile=compile,
            deterministic=deterministic,
            checkpoint_every=checkpoint_every,
            max_steps=max_steps,
        )
        parts = ModuleParts(model, made, objective, lambda model: with_optimizer, make_schedule(schedule))
        recipe = module_recipe(recipe_name(model), parts=parts)
        label = RunLabel(name, note, tuple(tags))
        with own_generators(seed):
            ended = fit_recipe(
                recipe,
                options,
                config,
                Path(runs),
                label=label,
                callbacks=callbacks,
                loggers=loggers,
                show_progress=show_progress,
            )
        return _opened(ended, parts, show_progress)


def resume(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    data: Any = None,
    loss: Callable[[Any, Any], Tensor] | None = None,
    optimizer: Optimizer | Callable[..., Optimizer] | None = None,
    schedule: Callable[[float], float] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    validation: Any = None,
    test: Any = None,
    step: int | None = None,
    data_now: str | None = None,
    code: CodeAccess = NO_CODE,
    callbacks: Sequence[Callback] = (),
    loggers: Sequence[Logger] = (),
    show_progress: bool = True,
) -> Run:
    """Go on with the run at `path` from its newest checkpoint, or from that of `step`; a finished run is only opened.

    A run of one's own module needs model and data again, and the functions that were given to `quoin.fit`: what it was
    given by name, the run knows. Weights, the optimizer's state and where the data stand are those of the checkpoint.

    Args:
        data_now: Where the data of a recipe's run are now, named as for `--data`, if they moved.
        code: Which of your own files may run, if a recipe's run was trained with some.
    """
    with _as_arguments(), torch_as_it_was():
        folder = RunFolder.open(Path(path))
        if folder.config["kind"] != "module":
            _refuse_parts(folder, model, data)
            run = Run(folder, step=step, data_now=data_now, code=code)
            resume_run(run, callbacks=callbacks, loggers=loggers, show_progress=show_progress)
            return Run(folder, code=code)
        recorded = Run(folder)
        if model is None or data is None:
            raise recorded.recipe.lacking("resume", "model=..., data=...")  # type: ignore[attr-defined]
        parts = parts_again(
            _options(folder),
            model,
            data=data,
            loss=loss,
            optimizer=optimizer,
            schedule=schedule,
            metrics=metrics,
            validation=validation,
            test=test,
            is_resumed=True,
        )
        run = Run(folder, step=step, recipe=module_recipe(folder.recipe, folder.path, parts))
        if not checkpoint_steps(folder.checkpoints):
            raise UserError(f"{folder.path} was stopped before its first checkpoint: start it again with quoin.fit")
        with own_generators(run.options.seed):
            ended = resume_run(run, callbacks=callbacks, loggers=loggers, show_progress=show_progress)
        return _opened(ended, parts, show_progress)


def open_run(
    path: str | Path,
    *,
    model: nn.Module | None = None,
    data: Any = None,
    loss: Callable[[Any, Any], Tensor] | None = None,
    metrics: Mapping[str, Metric] | None = None,
    validation: Any = None,
    test: Any = None,
    step: int | None = None,
    data_now: str | None = None,
    code: CodeAccess = NO_CODE,
) -> Run:
    """The run at `path`, to read, predict and evaluate with.

    Of a run of one's own module, `model` is given the run's best weights, in place; without it the run can be read and
    compared. With its data too, and the functions that the run cannot store, it evaluates itself as it was.
    """
    with _as_arguments():
        folder = RunFolder.open(Path(path))
        if folder.config["kind"] != "module":
            _refuse_parts(folder, model, data)
            return Run(folder, step=step, data_now=data_now, code=code)
        if model is None:
            return Run(folder, step=step)
        parts = parts_again(
            _options(folder),
            model,
            data=data,
            loss=loss,
            optimizer=None,
            schedule=None,
            metrics=metrics,
            validation=validation,
            test=test,
            is_resumed=False,
        )
        run = Run(folder, step=step, recipe=module_recipe(folder.recipe, folder.path, parts))
        _ = run.trained  # now, so that what the user does with the model later stays
        return run


def _opened(ended: RunResult, parts: ModuleParts, show_progress: bool) -> Run:
    """The run as it ended: of one that is finished, the model holds the best weights."""
    folder = ended.folder
    if ended.result is None:
        go_on = f"go on with quoin.resume({str(folder.path)!r}, model=..., data=...)"
        Progress(folder.recipe, show_progress=show_progress).say(f"interrupted at step {ended.output.step}; {go_on}")
    run = Run(folder, recipe=module_recipe(folder.recipe, folder.path, parts))
    if ended.result is not None:
        _ = run.trained
    return run


def _options(folder: RunFolder) -> ModuleOptions:
    return options_from_json(ModuleOptions, folder.config["options"], str(folder.path / "config.json"))


def _refuse_parts(folder: RunFolder, model: Any, data: Any) -> None:
    if model is not None or data is not None:
        raise UserError(
            f"{folder.path} is a run of recipe {folder.recipe}, which has its own model: leave model= and data= out"
        )


def _check_lists(callbacks: Any, tags: Any) -> None:
    if not isinstance(callbacks, (list, tuple)) or not all(map(callable, callbacks)):
        raise UserError(f"expected callbacks= as a list of functions of an event, got {format_value(callbacks)}")
    if isinstance(tags, str) or not all(isinstance(tag, str) for tag in tags):
        raise UserError(f"expected tags= as a list of words, got {format_value(tags)}")


def _batch_size(given: int | None, data: ModuleData) -> int:
    """That of the DataLoader, unless another is given; one that makes its own batches has no other."""
    examples, loader = data.splits["train"], data.read.loader
    if not isinstance(examples, StreamExamples):
        return (32 if loader is None else loader.batch_size) if given is None else given
    if given is not None:
        raise UserError(
            f"batch_size={given}: this DataLoader makes its own batches; set it there, and leave it out here"
        )
    return examples.batch_rows


def _given(validation: Any, test: Any) -> tuple[str, ...]:
    return tuple(name for name, given in (("validation", validation), ("test", test)) if given is not None)


def _num_parameters(model: nn.Module) -> int:
    lazy = any(isinstance(each, nn.UninitializedParameter) for each in model.parameters())
    return 0 if lazy else sum(each.numel() for each in model.parameters())


@contextmanager
def _as_arguments() -> Iterator[None]:
    """What the command line calls --max-grad-norm, an error here calls max_grad_norm=."""
    try:
        yield
    except UserError as error:
        text = re.sub(r"--([a-z][a-z-]+)", lambda flag: flag[1].replace("-", "_") + "=", str(error))
        error.args = (text,)
        raise
