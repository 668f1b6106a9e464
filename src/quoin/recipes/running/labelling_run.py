"""A trained classifier of texts opened again: its vocabulary and its classes with it, its texts gone."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from quoin.data import LabelledFacts, Pairs, encode_texts, pad_sequences
from quoin.errors import Mistake, shown
from quoin.objectives import accuracy, cross_entropy
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.run import best_model, open_one
from quoin.train import Metrics, RunFolder

__all__ = ["LabelledPrediction", "LabellingRun", "is_labelling_run", "open_labelling_run"]

AT_ONCE = 512  # texts that are judged together


class LabelledPrediction(NamedTuple):
    """One row a text."""

    values: Tensor  # (n,): class numbers
    probabilities: Tensor  # (n, q)


@dataclass(frozen=True)
class LabellingRun:
    """A run's model with what its tokens and classes stand for."""

    folder: RunFolder
    recipe: Recipe
    options: Any
    facts: LabelledFacts
    model: nn.Module
    step: int

    @torch.no_grad()
    def outputs(self, texts: Sequence[str]) -> Tensor:  # -> (n, q)
        """The logits of each text; those of like length are read together, so that little is padded."""
        rows = encode_texts(self.facts.vocabulary, texts)
        order = sorted(range(len(rows)), key=lambda row: len(rows[row]))
        found = torch.empty(len(rows), self.facts.num_classes)
        for start in range(0, len(rows), AT_ONCE):
            some = order[start : start + AT_ONCE]
            found[some] = self.model(*pad_sequences([rows[row] for row in some]))
        return found

    def predict(self, texts: Sequence[str]) -> LabelledPrediction:
        """The likeliest class of each text, and the probability of every class."""
        logits = self.outputs(texts)
        return LabelledPrediction(logits.argmax(-1), logits.softmax(-1))

    def evaluate(self, pairs: Pairs) -> Metrics:
        """The metrics on other texts with classes of the same names."""
        known = {name: number for number, name in enumerate(self.facts.class_names)}
        if strange := [name for name in pairs.targets if name not in known]:
            names = shown(", ".join(known))
            raise Mistake(f"the run knows the classes {names}, {pairs.name} has {shown(strange[0])}: choose data with its classes")
        labels, logits = torch.tensor([known[name] for name in pairs.targets]), self.outputs(pairs.sources)
        return {"accuracy": accuracy(logits.argmax(-1), labels), "cross_entropy": float(cross_entropy(logits, labels).mean())}


def is_labelling_run(folder: RunFolder) -> bool:
    """Whether the folder's run learnt the classes of texts."""
    return isinstance(data := folder.config["data"], dict) and {"text_vocabulary", "class_names"} <= data.keys()


def open_labelling_run(path: Path | str, *, step: int | None = None) -> LabellingRun:
    """The best model of the text classifier's run at `path`, from its newest checkpoint or from that of `step`."""
    folder = open_one(Path(path))
    if not is_labelling_run(folder):
        came = f"{shown(str(path))} is one of {folder.recipe}"
        raise Mistake(f"expected the run of a classifier of texts, such as sequence-classification, but {came}: give another")
    facts = folder.facts(LabelledFacts)
    best = best_model(folder, facts, step)
    return LabellingRun(folder, best.recipe, best.options, facts, best.model, best.step)
