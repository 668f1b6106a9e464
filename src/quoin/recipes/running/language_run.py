"""A trained language model opened again, with its vocabulary and without its text: to go on writing, to judge, to compress."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from quoin.data import TextFacts, Vocabulary
from quoin.errors import Mistake, shown
from quoin.models import AutoregressiveModel, LanguageTransformer, SlidingContext, num_parameters
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.run import open_one, read_config, saved_state
from quoin.recipes.running.translation_run import is_translation_run
from quoin.train import RunFolder, load_strictly

__all__ = ["LanguageRun", "is_language_run", "open_language_run"]


@dataclass(frozen=True)
class LanguageRun:
    """A run's model with what its tokens stand for."""

    folder: RunFolder
    recipe: Recipe
    options: Any
    facts: TextFacts
    model: Any  # an nn.Module that is an AutoregressiveModel
    step: int

    @property
    def vocabulary(self) -> Vocabulary:
        return self.facts.tokens

    @property
    def window(self) -> int | None:
        """The most tokens that the model can look back on; None for one that carries a state of its own for ever."""
        return self.options.context if isinstance(self.model, LanguageTransformer) else None

    @property
    def num_parameters(self) -> int:
        """How many numbers were learnt, shared ones once; of a model that counts, the numbers in its tables."""
        tables = sum(each.numel() for each in self.model.buffers() if each.is_floating_point())
        return num_parameters(self.model) or tables

    def reader(self) -> AutoregressiveModel:
        """The model as it reads a text of any length: one that was trained on windows goes from window to window."""
        self.model.eval()
        return self.model if self.window is None else SlidingContext(self.model, self.window)

    def encode_prompt(self, prompt: str) -> Tensor:  # -> (1, n)
        """The tokens of `prompt`, one at least: without any, the text begins as it would after a line."""
        tokens = self.vocabulary.encode(prompt)
        if len(tokens):
            return tokens[None]
        try:
            return self.vocabulary.encode("\n")[None]
        except Mistake:  # a vocabulary without lines
            return torch.zeros(1, 1, dtype=torch.long)


def is_language_run(folder: RunFolder) -> bool:
    """Whether the folder's run learnt from a text."""
    return isinstance(data := folder.config.get("data"), dict) and {"vocabulary", "num_characters"} <= data.keys()


def open_language_run(path: Path | str, *, step: int | None = None) -> LanguageRun:
    """The best model of the language run at `path`, from its newest checkpoint or from that of `step`."""
    folder = open_one(Path(path))
    recipe, options, _ = read_config(folder)
    if is_translation_run(folder):
        raise Mistake(f"{shown(str(path))} translates: give it the sentences in a text file, quoin predict {path} FILE")
    if not is_language_run(folder):
        raise Mistake(f"expected a language model's run, such as lstm-lm's, but {shown(str(path))} is one of {recipe.name}: give another")
    facts = TextFacts.from_json(folder.config["data"])
    state, at = saved_state(folder, step)
    model = recipe.model(options, facts)
    load_strictly(model, (state["best"] or state["task"]["model"])["weights"])
    return LanguageRun(folder, recipe, options, facts, model.eval(), at)
