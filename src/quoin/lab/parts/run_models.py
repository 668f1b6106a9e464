"""What trained models can be asked on a page, by their kind; runs that take the same input answer side by side."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from quoin.errors import UserError
from quoin.lab.parts.exhibit import Exhibit
from quoin.lab.parts.run_attention import attention_exhibits
from quoin.lab.parts.run_classes import row_exhibits, text_class_exhibits
from quoin.lab.parts.run_samples import sample_exhibits
from quoin.lab.parts.run_texts import language_exhibits, translation_exhibits
from quoin.runs import Run
from quoin.runs.kinds.generation import TrainedGenerator
from quoin.runs.kinds.language_modeling import TrainedLanguageModel
from quoin.runs.kinds.sequence_classification import TrainedTextClassifier
from quoin.runs.kinds.tabular import TrainedTabular
from quoin.runs.kinds.translation import TrainedTranslator

__all__ = ["model_exhibits"]

MOST_TOGETHER = 6  # runs in one exhibit
Ask = Callable[[Sequence[Run]], list[Exhibit]]


def model_exhibits(runs: Sequence[Run]) -> list[Exhibit]:
    """The exhibits of finished or half-trained runs; of a kind that nothing can be asked, none."""
    groups: dict[tuple[Any, ...], list[Run]] = {}
    asks: dict[tuple[Any, ...], Ask] = {}
    found, attending = [], []
    for run in runs:
        try:
            key, ask = _input_of(run)
            attending += attention_exhibits(run)
        except UserError:  # nothing was kept yet, or it is damaged: the curves say so
            continue
        if ask is not None:
            groups.setdefault(key, []).append(run)
            asks[key] = ask
    for key, group in groups.items():
        for at in range(0, len(group), MOST_TOGETHER):
            found += asks[key](group[at : at + MOST_TOGETHER])
    return _numbered(found + attending)


def _input_of(run: Run) -> tuple[tuple[Any, ...], Ask | None]:
    """What must agree for runs to take one input and answer in the same words, and who asks them."""
    info = run.data_info
    match run.trained:
        case TrainedLanguageModel():
            return ("text",), language_exhibits
        case TrainedTranslator():
            return ("sentence",), translation_exhibits
        case TrainedTextClassifier():
            return ("labelled text", info.class_names), text_class_exhibits
        case TrainedTabular():
            answers = info.class_names or info.target_names
            return ("row", info.feature_shape, answers, run.recipe.gives_probabilities), row_exhibits
        case TrainedGenerator():
            return ("samples", getattr(info, "image_shape", None)), sample_exhibits
    return (), None


def _numbered(exhibits: Sequence[Exhibit]) -> list[Exhibit]:
    """The same, where a name stands for the second time with a number behind it: addresses lead to one exhibit."""
    seen: Counter[str] = Counter()
    found = []
    for each in exhibits:
        seen[each.slug] += 1
        slug = each.slug if seen[each.slug] == 1 else f"{each.slug}-{seen[each.slug]}"
        found.append(dataclasses.replace(each, slug=slug))
    return found
