"""A trained language model opened again, with its vocabulary and without its text: to go on writing, to judge, to compress."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from quoin.data import TextFacts, Vocabulary, check_same_vocabulary, load_text, open_tokens
from quoin.errors import Mistake, shown
from quoin.models import AutoregressiveModel, LanguageTransformer, SlidingContext, num_parameters
from quoin.objectives import cross_entropy
from quoin.recipes.running.catalogue import Recipe
from quoin.recipes.running.run import best_model, open_one
from quoin.recipes.running.translation_run import is_translation_run
from quoin.train import Metrics, RunFolder

__all__ = ["LanguageRun", "is_language_run", "open_language_run"]

AT_ONCE = 1024  # tokens that are judged together


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

    @torch.no_grad()
    def evaluate(self, source: str) -> Metrics:
        """Nats and perplexity of a token, bits of a character, on all of another text (`text:PATH`, `tokens:PATH` or topics)."""
        tokens, num_characters = self._tokens_of(source)
        model, last, nats = self.reader(), self.encode_prompt("")[0], 0.0
        state = model.start(1, len(tokens) + 1)
        for piece in tokens.split(AT_ONCE):
            logits, state = model.step(state, torch.cat([last, piece[:-1]])[None])
            nats += float(cross_entropy(logits[0].double(), piece).sum())
            last = piece[-1:]
        loss = nats / len(tokens)
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return {"loss": loss, "perplexity": perplexity, "bits_per_character": nats / math.log(2) / num_characters}

    def _tokens_of(self, source: str) -> tuple[Tensor, int]:
        """The tokens of another text in the run's own vocabulary, and how many characters they are."""
        form, _, place = source.partition(":")
        if form != "tokens":
            content = load_text(source).content
            return self.vocabulary.encode(content), len(content)
        found = open_tokens(place)
        check_same_vocabulary(self.vocabulary, found.vocabulary, source)
        parts = found.train, found.validation, found.test
        return torch.cat([part.in_memory() for part in parts]), sum(part.num_characters for part in parts)

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
    return isinstance(data := folder.config["data"], dict) and {"vocabulary", "num_characters"} <= data.keys()


def open_language_run(path: Path | str, *, step: int | None = None) -> LanguageRun:
    """The best model of the language run at `path`, from its newest checkpoint or from that of `step`."""
    folder = open_one(Path(path))
    if is_translation_run(folder):
        raise Mistake(f"{shown(str(path))} translates: give it the sentences in a text file, quoin predict {path} FILE")
    if not is_language_run(folder):
        raise Mistake(f"expected a language model's run, such as lstm-lm's, but {shown(str(path))} is one of {folder.recipe}: give another")
    facts = folder.facts(TextFacts)
    best = best_model(folder, facts, step)
    return LanguageRun(folder, best.recipe, best.options, facts, best.model, best.step)
