"""What a trained run can do, by its kind of learning: `KINDS` has a class for each kind that can do more than measure
itself.

A class's methods are what runs of that kind can do; what a class lacks, its runs cannot. `Run` asks here, and nowhere
is a kind guessed.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quoin.runs.kinds.trained import Trained

__all__ = ["KINDS", "LANGUAGE_MODELING", "MODULE", "MULTIRUN", "SWEEP", "trained_class"]

MULTIRUN = "multirun"  # the folder of several runs
SWEEP = "sweep"  # the folder of trials
MODULE = "module"  # of the user's own, without a recipe
LANGUAGE_MODELING = "language-modeling"
KINDS = {
    "classification": "tabular.TrainedTabular",
    "regression": "tabular.TrainedTabular",
    "sequence-classification": "sequence_classification.TrainedTextClassifier",
    "hidden-markov-model": "sequences.TrainedHiddenMarkovModel",
    "markov-chain": "sequences.TrainedMarkovChain",
    "translation": "translation.TrainedTranslator",
    LANGUAGE_MODELING: "language_modeling.TrainedLanguageModel",
    "image-generation": "generation.TrainedImageModel",
    "point-generation": "generation.TrainedPointModel",
    "density-estimation": "mixture.TrainedMixture",
    MODULE: "own_module.TrainedModule",
    "study": "trained.Trained",
}


def trained_class(kind: str) -> "type[Trained]":
    """The class of a kind; of one that `KINDS` lacks, which the task of a user's own recipe may have, one that can do
    no more than measure itself."""
    module, name = KINDS.get(kind, "trained.TrainedOtherwise").split(".")
    return getattr(importlib.import_module(f"quoin.runs.kinds.{module}"), name)
