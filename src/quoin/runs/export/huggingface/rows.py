"""Models of rows, signals and anything else of numbers, which transformers has no classes for: `AutoModel` with code of
their own, the scales of their training data inside."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Real
from torch import Tensor, nn

from quoin.data import StandardScaler, keyed_generator
from quoin.errors import UserError
from quoin.runs.export.huggingface.model_card import write_model_card
from quoin.runs.export.huggingface.opening import is_there, not_compared, own_code_aside, quiet
from quoin.runs.export.huggingface.own_code import TRUST, write_own_code
from quoin.runs.export.parts.tabular import random_rows, scaled_test_rows
from quoin.runs.export.written import Difference, Written, largest_difference
from quoin.runs.run import Run

__all__ = ["write_rows"]

BATCHES = (2, 5)
_LOAD = """
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained(".", trust_remote_code=True)
features = torch.zeros({shape}, dtype=torch.float64)  # yours: rows in the units of the training data
with torch.no_grad():
    outputs = model(features).logits
print({answer})
"""


class ScaledModel(nn.Module):
    """Rows in the source's own units to logits, or to numbers in the target's own unit."""

    mean: Float[Tensor, "..."]
    std: Float[Tensor, "..."]

    def __init__(self, model: nn.Module, scaler: StandardScaler, target_scaler: StandardScaler | None) -> None:
        super().__init__()
        self.model, self.has_target_scale = model, target_scaler is not None
        self.register_buffer("mean", scaler.mean)
        self.register_buffer("std", scaler.std)
        if target_scaler is not None:
            self.register_buffer("target_mean", target_scaler.mean)
            self.register_buffer("target_std", target_scaler.std)

    def forward(self, features: Real[Tensor, "batch ..."]) -> Float[Tensor, "batch ..."]:
        outputs = self.model(((features.double() - self.mean) / self.std).float())
        return outputs.double() * self.target_std + self.target_mean if self.has_target_scale else outputs


def write_rows(run: Run, folder: Path) -> Written:
    """Write the folder of a model of rows or signals and compare its outputs."""
    trained: Any = run.trained
    info = trained.data_info
    model = ScaledModel(trained.model, trained.feature_scaler, trained.target_scaler).eval()
    example = torch.zeros(2, *info.feature_shape, dtype=torch.float64)
    config: dict[str, Any] = {"feature_names": list(info.feature_names), "target_names": list(info.target_names)}
    if info.class_names is not None:
        names = {str(number): name for number, name in enumerate(info.class_names)}
        config |= {"id2label": names, "label2id": {name: int(number) for number, name in names.items()}}
    notes = [TRUST]
    files = write_own_code(model, folder, config, name=run.recipe_name, inputs={"features": example}, task="rows")
    answer = "model.config.id2label[int(outputs.argmax())]" if info.class_names is not None else "outputs"
    code = _LOAD.format(shape=(1, *info.feature_shape), answer=answer)
    tag = "tabular-classification" if info.class_names is not None else "tabular-regression"
    files.append(write_model_card(run, folder, code=code, library="transformers", pipeline_tag=tag, notes=notes))
    if not is_there("transformers"):
        return Written(tuple(files), (), (*notes, not_compared("transformers")))
    differences: list[Difference] = []
    for each in _compare(run, model, folder):
        if isinstance(each, Difference):
            differences.append(each)
        else:
            notes.append(each)
    return Written(tuple(files), tuple(differences), tuple(notes))


@torch.no_grad()
def _compare(run: Run, ours: ScaledModel, folder: Path) -> Iterator[Difference | str]:
    trained: Any = run.trained
    scaler, generator = trained.feature_scaler, keyed_generator("export", 0)
    with quiet(), own_code_aside():
        from transformers import AutoModel

        theirs: Any = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    for rows in BATCHES:
        features = random_rows(trained, rows, generator)
        yield Difference(f"random rows, batch {rows}", _difference(trained, features, theirs))
    try:
        scaled = scaled_test_rows(run)
    except (UserError, OSError) as error:
        yield f"compared on random rows alone, for its own data are not at hand: {error}"
        return
    features = scaled.double() * scaler.std + scaler.mean
    yield Difference(f"rows of its test data, batch {len(features)}", _difference(trained, features, theirs))


def _difference(trained: Any, features: Tensor, theirs: Any) -> float:
    """By the run's own prediction, not by what was written."""
    ours = trained.outputs(features) if trained.target_scaler is None else trained.predict(features).values
    return largest_difference(ours, theirs(features).logits)
