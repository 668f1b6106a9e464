"""A module of somebody's own, trained: it predicts and is evaluated on data of the form it was trained on."""

from typing import TYPE_CHECKING, Any

import torch

from quoin.data.example_info import ExampleInfo
from quoin.data.example_reading import read_examples, read_inputs
from quoin.data.nested import concatenate, map_tensors
from quoin.errors import UserError
from quoin.runs.kinds.trained import Trained
from quoin.runs.module_recipe import ModuleRecipe
from quoin.tasks.module_objective import call_model
from quoin.tasks.own_module import evaluate_module
from quoin.train import Metrics

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["TrainedModule"]


class TrainedModule(Trained):
    """The model that was given, the run's weights read into it, on the device where it is."""

    data_info_class = ExampleInfo
    is_a = "is of a module of your own, which is in your Python code,"
    instead = "there, quoin.open_run(path, model=...) predicts and is evaluated, and its model is yours to look into"
    data_info: ExampleInfo

    def __init__(self, run: "Run") -> None:
        super().__init__(run)
        assert isinstance(run.recipe, ModuleRecipe)
        self.module_recipe = run.recipe

    @property
    def _place(self) -> torch.Tensor:
        """A tensor of the dtype and on the device that inputs need."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return next((each for each in tensors if each.is_floating_point()), torch.empty(0))

    @torch.no_grad()
    def predict(self, inputs: Any) -> Any:
        """The model's outputs for inputs of the form of the training data, without targets, on the CPU; a data frame
        may have more columns, in any order."""
        examples = read_inputs(inputs, self.data_info.feature_names, self._place.dtype)
        self.model.eval()
        outputs = [
            call_model(self.model, batch.to(self._place.device).inputs)
            for batch in examples.in_order(self.options.batch_size)
        ]
        return map_tensors(lambda leaf: leaf.cpu(), concatenate(outputs))

    def evaluate(self, data: Any, *, target: str | None = None) -> Metrics:
        """The mean loss and metrics on other data, of any form that `quoin.fit` takes."""
        parts = self.module_recipe.parts
        if parts is None or parts.objective is None:
            raise self.module_recipe.lacking("open_run", "model=..., loss=..., metrics=...")
        if isinstance(data, str):
            raise UserError(f"expected data as {self.data_info.source} to evaluate on, got the name {data!r}")
        whole, names = parts.objective.loss is None, self.options.target
        read = read_examples(
            data,
            target=target or (names[0] if len(names) == 1 else names or None),
            whole=whole,
            dtype=self._place.dtype,
            feature_names=self.data_info.feature_names,
            class_names=self.data_info.class_names,
        )
        return evaluate_module(self.model, parts.objective, read.examples, self.options.batch_size, self._place.device)
