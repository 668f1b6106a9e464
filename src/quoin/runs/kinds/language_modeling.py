"""Trained to say the next token of a text; with its vocabulary and without its text: to go on writing, to judge, to compress."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from quoin.data import TextFacts, TextStream, Vocabulary, check_same_vocabulary, keyed_generator, load_text, open_tokens
from quoin.errors import Mistake, shown
from quoin.generate import Sampling, beam_search, stream
from quoin.generate.decoding import Choose
from quoin.losses import cross_entropy
from quoin.models import AutoregressiveModel, LanguageTransformer, SlidingContext, num_parameters
from quoin.runs.kinds.trained import Trained
from quoin.train import Metrics

if TYPE_CHECKING:
    from quoin.runs.language_codec import LanguageCodec

__all__ = ["TrainedLanguageModel"]

TOKENS_PER_STEP = 1024  # that are judged together


class TrainedLanguageModel(Trained):
    """A model of texts, with what its tokens stand for."""

    data_info = TextFacts
    is_a = "is a language model"
    facts: TextFacts

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
    def evaluate(self, source: str, *, target: str | None = None) -> Metrics:
        """Nats and perplexity of a token, bits of a character, on all of another text (`text:PATH`, `tokens:PATH` or topics)."""
        if target is not None:
            raise Mistake(f"{self.run.path} is a language model, got --target {shown(target)}: leave it out, a text has none")
        tokens, num_characters = self._tokens_of(source)
        model, last, nats = self.reader(), self.encode_prompt("")[0], 0.0
        state = model.start(1, len(tokens) + 1)
        for piece in tokens.split(TOKENS_PER_STEP):
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

    def generate(self, prompt: str = "", *, max_tokens: int = 300, choose: Choose | None = None, seed: int = 0) -> str:
        """A text that goes on from `prompt`; `choose` says how each token is drawn, by itself at temperature 1."""
        said, generator = TextStream(self.vocabulary), keyed_generator("generate", seed)
        pieces = [said.push(token) for token, _ in self.stream(prompt, choose or Sampling(generator=generator), max_tokens)]
        return "".join([*pieces, said.finish()])

    def stream(self, prompt: str, choose: Choose, max_tokens: int) -> Iterator[tuple[int, float]]:
        """Tokens as they are drawn, each with its log-probability."""
        model, tokens = self.reader(), self.encode_prompt(prompt)
        state = model.start(1, tokens.shape[1] + max_tokens)
        for chosen in stream(model, state, tokens, choose, max_tokens=max_tokens):
            yield int(chosen.tokens[0]), float(chosen.log_probs[0])

    def beam(self, prompt: str, width: int, max_tokens: int) -> Iterator[tuple[int, float]]:
        """The tokens of the best beam, known only when all are; the log-probability of the whole stands with the last."""
        model, tokens = self.reader(), self.encode_prompt(prompt)
        state = model.start(1, tokens.shape[1] + max_tokens)
        found = beam_search(model, state, tokens, width=width, max_tokens=max_tokens)
        said = found.tokens[0, 0].tolist()
        for number, token in enumerate(said, start=1):
            yield token, float(found.log_probs[0, 0]) if number == len(said) else 0.0

    def codec(self) -> "LanguageCodec":
        """The model as a compressor of files."""
        from quoin.runs.language_codec import LanguageCodec

        return LanguageCodec(self)
