"""One trial of a sweep, trained to its end or taken up where a kill left it: a run, or a multirun over seeds."""

import contextlib
import dataclasses
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from quoin.errors import UserError
from quoin.runs.environment import package_as_json
from quoin.runs.fit import fit_member, resume_run
from quoin.runs.kinds import MULTIRUN
from quoin.runs.multirun import Multirun, resume_multirun
from quoin.runs.paths import options_here
from quoin.runs.run import Run
from quoin.runs.run_code import code_as_json, code_of, save_code
from quoin.runs.sweep_storage import ClaimedTrial, TrialStorage
from quoin.train import Callback, RunEvent, RunFolder, torch_as_it_was

__all__ = [
    "SweepStopped",
    "TrialOutput",
    "check_trial_is_free",
    "only_failures",
    "pruning_callback",
    "train_trial",
]


class TrialOutput(NamedTuple):
    """What a trial came to: the final metrics of each seed's run; of a pruned one, those of its first."""

    metrics: list[dict[str, float]]
    seconds: float
    pruned: bool = False

    def mean_and_std(self) -> dict[str, tuple[float, float]]:
        """Of each metric that all seeds have; the std is that of the sample."""
        names = [name for name in self.metrics[0] if all(name in each for each in self.metrics)]
        columns = {name: [float(each[name]) for each in self.metrics] for name in names}
        return {
            name: (statistics.fmean(values), statistics.stdev(values) if len(values) > 1 else 0.0)
            for name, values in columns.items()
        }


def train_trial(
    sweep: Run,
    trial: ClaimedTrial,
    values: dict[str, Any],
    storage: TrialStorage,
    *,
    num_seeds: int,
    pruning: Callback | None,
    interrupted: Callable[[], bool],
) -> TrialOutput | None:
    """Train the trial; None where somebody interrupted it."""
    options = dataclasses.replace(options_here(sweep), **values)
    name = f"trial-{trial.number}"
    callbacks: list[Callback] = [_Interruption(interrupted)]
    first = [pruning, *callbacks] if pruning else callbacks
    if num_seeds == 1:
        ended = _train(sweep, sweep.folder, name, options, first)
        pruned = pruning is not None and storage.pruned(trial)
        return ended and TrialOutput([ended["metrics"]], ended["seconds"], pruned)
    folder = sweep.folder.member(name) or _make(sweep, name, options, num_seeds)
    results = []
    for index in range(num_seeds):
        chosen = Multirun("seed", num_seeds).member(index, options)
        ended = _train(sweep, folder, f"seed-{index}", chosen, callbacks if index else first)
        if ended is None:
            return None
        results.append(ended)
        if index == 0 and pruning is not None and storage.pruned(trial):
            return TrialOutput([ended["metrics"]], ended["seconds"], pruned=True)
    whole = Run(folder, code=sweep.code, recipe=sweep.recipe)
    resume_multirun(whole, show_progress=False)  # all its runs are there: it makes the result and the page
    return TrialOutput([each["metrics"] for each in results], sum(each["seconds"] for each in results))


def check_trial_is_free(sweep: Run, name: str) -> None:
    """Raise an error where another command trains the trial's runs, such as a `quoin resume` of one of them."""
    if trial := sweep.folder.member(name):
        for each in (trial, *filter(None, map(trial.member, trial.members()))):
            with each.locked():
                pass


def _train(sweep: Run, inside: RunFolder, name: str, options: Any, callbacks: Sequence[Callback]) -> Any:
    """The result of a run, begun or taken up; None where it was interrupted."""
    member = inside.member(name)
    if member is None:
        ended = fit_member(
            inside, name, sweep.recipe, options, sweep.run_config, callbacks=callbacks, show_progress=False
        )
    else:
        with torch_as_it_was():
            run = Run(member, data_now=sweep.data_now, code=sweep.code, recipe=sweep.recipe)
            ended = resume_run(run, callbacks=callbacks, show_progress=False)
    return ended.result


def _make(sweep: Run, name: str, options: Any, num_seeds: int) -> RunFolder:
    """The folder of a trial over seeds."""
    config = {
        "kind": MULTIRUN,
        "options": dataclasses.asdict(options),
        "settings": dataclasses.asdict(sweep.run_config),
        "multirun": {"over": "seed", "count": num_seeds},
        "data": None,
        "code": code_as_json(code := code_of(sweep.recipe, options)),
        **package_as_json(sweep.recipe),
    }
    folder = RunFolder.create_member(sweep.folder, name, sweep.folder.recipe, config, {})
    save_code(folder, code)
    return folder


class _Interruption:
    """Ends a run for which the request to stop arrived before its loop could hear it; its last checkpoint stays."""

    def __init__(self, interrupted: Callable[[], bool]) -> None:
        self._interrupted = interrupted

    def __call__(self, event: RunEvent) -> None:
        if self._interrupted():
            raise KeyboardInterrupt


def pruning_callback(storage: TrialStorage, trial: ClaimedTrial, metric: str, pruner: Any) -> Callback:
    """Tells the pruner the metric of every epoch, and stops the run if it says so."""
    return _Pruning(storage, trial, metric, pruner)


class _Pruning:
    def __init__(self, storage: TrialStorage, trial: ClaimedTrial, metric: str, pruner: Any) -> None:
        self._storage, self._trial, self._metric, self._pruner = storage, trial, metric, pruner

    def __call__(self, event: RunEvent) -> None:
        if event.kind != "epoch" or self._metric not in event.metrics:
            return
        epoch = max(1, round(event.epoch))
        if self._storage.report(self._trial, epoch, event.metrics[self._metric], self._pruner):
            event.stop()


@contextlib.contextmanager
def only_failures() -> Iterator[None]:
    """Tell a fault of the trial from one of the machine: a full disk ends the sweep and not the trial."""
    try:
        yield
    except UserError as error:
        if isinstance(error.__cause__, OSError):
            raise SweepStopped(str(error)) from error
        raise


class SweepStopped(UserError):
    """What no other trial would escape either."""
