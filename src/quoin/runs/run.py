"""A run, opened: each file of its folder is read once, and what it can do follows from its kind.

    run = Run.open("runs/mlp-1")
    run.options, run.metrics, run.model
    run.predict(features); run.evaluate(); run.inspect(); run.report()

The kind of learning stands in config.json; kinds/ says what each can do. Starting and resuming are in fit.py.
"""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from quoin.display import shown
from quoin.errors import UserError, format_value
from quoin.options import options_from_json
from quoin.own_code import CodeFile, resolve_code_with
from quoin.runs.catalog import Recipe, find_recipe, recipe_from_code, recipe_from_package, recipe_names
from quoin.runs.kinds import KINDS, LANGUAGE_MODELING, MODULE, MULTIRUN, SWEEP, trained_class
from quoin.runs.module_recipe import module_recipe
from quoin.runs.out_of_memory import explain_out_of_memory
from quoin.runs.run_code import NO_CODE, CodeAccess, check_access, find_run_code, recipe_file
from quoin.runs.run_config import RunConfig
from quoin.tasks.host_generators import generators_as_they_were
from quoin.train import Metrics, RunFolder, load_state_dict_strict, torch_as_it_was
from quoin.train.run_state import fitting, model_weights, read_state

if TYPE_CHECKING:
    from quoin.runs.export.written import Written
    from quoin.runs.inspect_run import Inspection
    from quoin.runs.kinds.trained import Trained
    from quoin.train import Task

__all__ = ["Run"]

ABILITIES = {  # what a kind of run may be able to do: by its name, in words, and the command
    "predict": ("predict", "quoin predict"),
    "evaluate": ("be evaluated on other data", "quoin eval --data"),
    "generate": ("generate", "quoin generate"),
    "inspect": ("be inspected", "quoin inspect"),
    "codec": ("compress files", "quoin compress --model"),
}


@shown
class Run:
    """One run folder. To open it runs no code of the user's: that waits until the recipe or its options are asked for.

    Args:
        step: A checkpoint other than the newest.
        data_now: Where its data are now, if they moved.
        code: Which of the user's own files may run, if it was trained with some.
        recipe: Its recipe, where that is at hand.
        options: Its options, likewise.
    """

    def __init__(
        self,
        folder: RunFolder,
        *,
        step: int | None = None,
        data_now: str | None = None,
        code: CodeAccess = NO_CODE,
        recipe: Recipe | None = None,
        options: Any = None,
    ) -> None:
        self.folder, self.step, self.data_now, self.code = folder, step, data_now, code
        config, where = folder.config, str(folder.path / "config.json")
        self.recipe_name = config["recipe"]
        if config["kind"] == MODULE and recipe is None:
            recipe = module_recipe(config["recipe"], folder.path)
        is_own = recipe_file(folder) is not None or "package" in config  # the recipe, and not Quoin's
        if recipe is None and not is_own and self.recipe_name not in recipe_names():
            raise UserError(
                f"{where}: expected a recipe of this Quoin, got {format_value(config['recipe'])}; restore the file "
                "or train again"
            )
        self.kind = config["kind"]
        known = (SWEEP,) if folder.sweep else (MULTIRUN,) if folder.multirun else KINDS
        several = folder.sweep or folder.multirun
        if self.kind not in known and (several or not is_own or self.kind in (MULTIRUN, SWEEP)):
            raise UserError(
                f"{where}: expected a kind of run ({', '.join(known)}), got {format_value(self.kind)}; restore the "
                "file or train again"
            )
        if recipe is not None:
            self.recipe = recipe
        if options is not None:
            self.options = options
        if not is_own:
            _ = self.options  # a damaged file is told now
        self.run_config = options_from_json(RunConfig, config["settings"], where)

    @functools.cached_property
    def recipe(self) -> Recipe:
        """What it was trained with. A file of the user's own runs, if the user lets it."""
        config = self.folder.config
        if (given := recipe_file(self.folder)) is not None:
            return dataclasses.replace(recipe_from_code(self._find_code(given)), name=self.recipe_name)
        if (package := config.get("package")) is not None:
            return recipe_from_package(package, self.recipe_name)
        return find_recipe(self.recipe_name)

    @functools.cached_property
    def options(self) -> Any:
        """Those of the recipe, checked by its class of options."""
        with self.own_code():
            return options_from_json(self.recipe.options, self.folder.config["options"], str(self.path / "config.json"))

    @classmethod
    def open(
        cls,
        path: Path | str,
        *,
        step: int | None = None,
        data_now: str | None = None,
        code: CodeAccess = NO_CODE,
    ) -> "Run":
        """The run at `path`, as a user names it; files that it has no use for are an error."""
        folder = RunFolder.open(Path(path))
        check_access(folder, code)
        return cls(folder, step=step, data_now=data_now, code=code)

    def own_code(self) -> AbstractContextManager[None]:
        """Inside, options that name a Python file mean one that the user lets run."""
        return resolve_code_with(self._find_code)

    def check_code(self) -> None:
        """Raise an error unless the user lets all of the run's own files run."""
        for each in self.folder.config.get("code", []):
            if each["use"] != "import":
                self._find_code(each["path"])

    @functools.cached_property
    def _find_code(self) -> Callable[[str], CodeFile]:
        return functools.cache(functools.partial(find_run_code, self.folder, self.code))  # a change is told once

    def __repr__(self) -> str:
        state = "unfinished" if self.folder.result is None else "finished"
        return f"Run({format_value(str(self.path), 120)}, {format_value(self.recipe_name)[1:-1]}, {state})"

    def _repr_html_(self) -> str:
        from quoin.runs.run_html import run_html

        return run_html(self)

    def check_single(self) -> None:
        if self.folder.sweep:
            raise UserError(f"{self.path} is a sweep: name one of the trials inside it, such as {self.path}/trial-0")
        if multirun := self.folder.multirun:
            inside = f"{self.path}/{multirun['over']}-0"
            raise UserError(f"{self.path} holds several runs: name one of the folders inside it, such as {inside}")

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def metrics(self) -> Metrics | None:
        """The final metrics, those of several runs by their mean; None while the run is not finished."""
        if (result := self.folder.result) is None:
            return None
        return {name: value["mean"] if isinstance(value, dict) else value for name, value in result["metrics"].items()}

    @functools.cached_property
    def history(self) -> list[dict[str, Any]]:
        """The metrics of every epoch so far, each line with its step, epoch and seconds."""
        return self.folder.metrics()

    @functools.cached_property
    def data_info(self) -> Any:
        """What the run remembers of its data; None where there are none."""
        self.check_single()
        data_info_class = trained_class(self.kind).data_info_class
        return self.folder.read_data_info(data_info_class) if data_info_class else None

    @functools.cached_property
    def trained(self) -> "Trained":
        """The trained model and what can be done with it."""
        self.check_single()
        return trained_class(self.kind)(self)

    @property
    def model(self) -> nn.Module:
        """The best model by validation, or the last where nothing is chosen."""
        return self.trained.model

    def can(self, ability: str) -> bool:
        """Whether runs of this kind can do this: "predict", "evaluate", "generate", "inspect" or "codec"."""
        return self.kind in KINDS and hasattr(trained_class(self.kind), ability)

    def expect(self, ability: str) -> "Trained":
        """The trained model, if runs of this kind can do this; a UserError that says what they can, if not."""
        self.check_can(ability)
        return self.trained

    def check_can(self, ability: str) -> None:
        """Refuse what runs of this kind cannot do, before anything is loaded."""
        self.check_single()
        if not self.can(ability):
            able = [command for name, (_, command) in ABILITIES.items() if self.can(name)]
            kind = trained_class(self.kind)
            instead = kind.instead or (f"use `{'`, `'.join(able)}`" if able else "give another run")
            what = kind.is_a
            raise UserError(
                f"{format_value(str(self.path))}, a run of {self.recipe_name}, {what} and cannot "
                f"{ABILITIES[ability][0]}: {instead}"
            )

    def predict(self, inputs: Any) -> Any:
        """Predictions for new examples: rows of numbers, texts to classify or sentences to translate."""
        return self.expect("predict").predict(inputs)  # type: ignore[attr-defined]

    def generate(self, what: str | int, *, seed: int = 0) -> Any:
        """New data from the model: a text that goes on from a prompt, or so many examples. `run.trained.generate` has
        all choices."""
        return self.expect("generate").generate(what, seed=seed)  # type: ignore[attr-defined]

    def evaluate(self, data: Any = None, *, target: str | None = None) -> Metrics:
        """The metrics of the best model on the splits of its own data, or on other `data`, named as for `quoin train
        --data` or already loaded."""
        if data is not None:
            return self.expect("evaluate").evaluate(data, target=target)  # type: ignore[attr-defined]
        from quoin.runs.fit import final_metrics

        with torch_as_it_was(), generators_as_they_were():
            return final_metrics(self.load_task(), self.options)

    def inspect(self, *, layer: str | None = None, rows: Sequence[int] = (), text: str | None = None) -> "Inspection":
        """What is inside the model, at its own test data: layers, and plots of what they do. A language model is
        looked into as it reads `text`, or the beginning of its own test text.
        """
        self.check_can("inspect")
        from quoin.runs.inspect_run import inspect_task

        if self.kind == LANGUAGE_MODELING:
            if rows:
                raise UserError(f"{self.path} is a language model, which has no rows: give --text instead of --row")
            return self.trained.inspect(text, layer=layer)  # type: ignore[attr-defined]
        if text is not None:
            raise UserError(f"expected a language model for --text, got {self.path}; leave it out, or give its run")
        with torch_as_it_was(), generators_as_they_were():
            return inspect_task(self.load_task(), self.path, layer=layer, rows=rows)

    def report(self) -> Path:
        """Write the run's page anew."""
        from quoin.runs.report import write_report

        self.check_single()
        with torch_as_it_was(), generators_as_they_were():
            return write_report(self, self.load_task(), self.folder.result)  # type: ignore[arg-type]

    def load_model(self) -> tuple[nn.Module, dict[str, Any], int]:
        """The best model that the checkpoint knows, all that was saved with it, and the step of the checkpoint."""
        state, step = self.load_state()
        where = f"the checkpoint of {self.path}"
        checked = read_state(state, where)
        saved: Any = checked["best"] or checked["task"].get("model")
        weights = model_weights(saved, f"{where}, model")
        with fitting(str(self.path / "config.json")), explain_out_of_memory(), self.own_code():
            model = self.recipe.model(self.options, self.data_info)
        with fitting(where):
            load_state_dict_strict(model, weights)
        return model.eval(), saved, step

    def export(self, to: str, out: Path | str | None = None, *, force: bool = False) -> "Written":
        """The model as `onnx`, `torch`, `huggingface` or `safetensors` in the folder `out`, by default named after the
        run, opened by the other library and compared: `is_equal` says whether it answers as the run does."""
        from quoin.runs.export.export import export_run

        return export_run(self, to, None if out is None else Path(out), force=force)

    def load_state(self) -> tuple[Any, int]:
        """The state of the newest checkpoint, or of `step`, and its step; there must be one."""
        found = self.folder.load_checkpoint(self.step)
        if found is None:
            raise UserError(
                f"{self.path} has no checkpoint yet: let it train for a while, or `quoin resume {self.path}`"
            )
        return found

    def load_task(self) -> "Task":
        """The task, its own data loaded again and the best model so far in it."""
        from quoin.runs.fit import load_task

        return load_task(self)
