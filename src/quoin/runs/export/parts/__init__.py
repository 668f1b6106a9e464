"""What of each kind of run is exported: `PARTS` has a function for each that has a model."""

import importlib
from typing import TYPE_CHECKING

from quoin.runs.export.written import CannotExportError
from quoin.runs.kinds import LANGUAGE_MODELING, MODULE

if TYPE_CHECKING:
    from quoin.runs.export.exportable import Exportable
    from quoin.runs.run import Run

__all__ = ["PARTS", "exportable_of"]

PARTS = {
    "classification": "tabular.tabular_parts",
    "regression": "tabular.tabular_parts",
    LANGUAGE_MODELING: "language.language_parts",
    "image-generation": "generation.generation_parts",
    "point-generation": "generation.generation_parts",
    "density-estimation": "mixture.mixture_parts",
    "sequence-classification": "texts.text_parts",
    "translation": "translation.translation_parts",
    "hidden-markov-model": "sequences.hidden_markov_parts",
    "markov-chain": "sequences.markov_parts",
    MODULE: "own_module.module_parts",
}


def exportable_of(run: "Run") -> "Exportable":
    """What of this run is exported; a kind without a model is refused."""
    if run.kind not in PARTS:
        raise CannotExportError(
            f"expected a run with a model to take elsewhere, got {run.path}, a run of {run.recipe_name}, which is a "
            "study of its own networks: `--to safetensors` keeps its weights, and its report has the results"
        )
    module, name = PARTS[run.kind].split(".")
    return getattr(importlib.import_module(f"quoin.runs.export.parts.{module}"), name)(run)
