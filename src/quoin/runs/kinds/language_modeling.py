"""A trained language model with its tokenizer and without its text: generation, evaluation, compression."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Self

import torch
from jaxtyping import Int
from torch import Tensor

from quoin.data import TextInfo, TextStream, Tokenizer, check_same_tokenizer, keyed_generator, load_text, open_tokens
from quoin.errors import UserError, format_value
from quoin.generate import TokenSampler, beam_search, stream_tokens
from quoin.generate.decoding import Choose
from quoin.losses import cross_entropy
from quoin.models import CausalLM, SlidingWindowModel, TransformerLanguageModel
from quoin.runs.kinds.trained import Trained
from quoin.tasks.own_attention import tell_slow_decoding
from quoin.train import Metrics, setup_device

if TYPE_CHECKING:
    from quoin.runs.inspect_run import Inspection
    from quoin.runs.language_codec import LanguageCodec

__all__ = ["TrainedLanguageModel"]

TOKENS_PER_STEP = 1024  # that are evaluated together
SHOWN_TOKENS = 64  # of its own text, that it is inspected with


class TrainedLanguageModel(Trained):
    """A model of texts, with what its tokens stand for."""

    data_info_class = TextInfo
    is_a = "is a language model"
    data_info: TextInfo
    _told = False  # that it decodes slowly, where it does

    @property
    def tokenizer(self) -> Tokenizer:
        return self.data_info.tokenizer

    @property
    def window(self) -> int | None:
        """The context length of the model; None for a recurrent one, whose hidden state has no bound."""
        return self.options.context_length if isinstance(self.model, TransformerLanguageModel) else None

    @property
    def device(self) -> torch.device:
        """Where the model lies; one without weights, such as an n-gram model, counts on the CPU."""
        return next((each.device for each in self.model.parameters()), torch.device("cpu"))

    def to(self, device: str) -> Self:
        """The model on this device, `auto` for the best there is, as `--device` has it. On CUDA each token is one
        replay of a captured step."""
        self.model.to(setup_device(device)[0].device)
        return self

    def generator(self, seed: int) -> torch.Generator:
        """A generator for samples, where the model lies."""
        keyed = keyed_generator("generate", seed)
        return keyed if self.device.type == "cpu" else torch.Generator(self.device).manual_seed(keyed.initial_seed())

    def token_model(self) -> CausalLM:
        """The model as it reads a text of any length: one that was trained on windows goes from window to window."""
        self.model.eval()
        if not self._told:
            self._told = True
            tell_slow_decoding(self.model)
        return self.model if self.window is None else SlidingWindowModel(self.model, self.window)

    @torch.no_grad()
    def evaluate(self, source: str, *, target: str | None = None) -> Metrics:
        """Nats and perplexity of a token, bits of a character, on all of another text (`text:PATH`, `tokens:PATH` or
        topics)."""
        if target is not None:
            raise UserError(
                f"{self.run.path} is a language model, got --target {format_value(target)}: leave it out, a text "
                "has none"
            )
        tokens, num_characters = self._tokens_of(source)
        tokens = tokens.to(self.device)
        model, last, nats = self.token_model(), self.encode_prompt("")[0], 0.0
        cache = model.init_cache(1, len(tokens) + 1)
        for piece in tokens.split(TOKENS_PER_STEP):
            logits, cache = model.decode_step(cache, torch.cat([last, piece[:-1]])[None])
            nats += float(cross_entropy(logits[0].double(), piece).sum())
            last = piece[-1:]
        loss = nats / len(tokens)
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return {"loss": loss, "perplexity": perplexity, "bits_per_character": nats / math.log(2) / num_characters}

    def _tokens_of(self, source: str) -> tuple[Tensor, int]:
        """The tokens of another text by the run's own tokenizer, and how many characters they are."""
        form, _, path = source.partition(":")
        if form != "tokens":
            content = load_text(source).content
            return self.tokenizer.encode(content), len(content)
        found = open_tokens(path)
        check_same_tokenizer(self.tokenizer, found.tokenizer, source)
        splits = found.train, found.validation, found.test
        return torch.cat([split.in_memory() for split in splits]), sum(split.num_characters for split in splits)

    def encode_prompt(self, prompt: str) -> Int[Tensor, "1 seq"]:
        """The tokens of `prompt`, one at least: without any, the text begins as it would after a line."""
        tokens = self.tokenizer.encode(prompt)
        if len(tokens):
            return tokens[None].to(self.device)
        try:
            return self.tokenizer.encode("\n")[None].to(self.device)
        except UserError:  # a vocabulary without lines
            return torch.zeros(1, 1, dtype=torch.long, device=self.device)

    def generate(self, prompt: str = "", *, max_tokens: int = 300, choose: Choose | None = None, seed: int = 0) -> str:
        """A text that goes on from `prompt`; `choose` says how each token is sampled, by default at temperature 1."""
        stream, generator = TextStream(self.tokenizer), self.generator(seed)
        pieces = [
            stream.push(token)
            for token, _ in self.stream(prompt, choose or TokenSampler(generator=generator), max_tokens)
        ]
        return "".join([*pieces, stream.finish()])

    def stream(self, prompt: str, choose: Choose, max_tokens: int) -> Iterator[tuple[int, float]]:
        """Tokens as they are sampled, each with its log-probability."""
        model, tokens = self.token_model(), self.encode_prompt(prompt)
        cache = model.init_cache(1, tokens.shape[1] + max_tokens)
        for chosen in stream_tokens(model, cache, tokens, choose, max_tokens=max_tokens):
            yield int(chosen.tokens[0]), float(chosen.log_probs[0])

    def beam(self, prompt: str, num_beams: int, max_tokens: int) -> Iterator[tuple[int, float]]:
        """The tokens of the best beam, known only when all are; the log-probability of the whole stands with the
        last."""
        model, tokens = self.token_model(), self.encode_prompt(prompt)
        cache = model.init_cache(1, tokens.shape[1] + max_tokens)
        found = beam_search(model, cache, tokens, num_beams=num_beams, max_tokens=max_tokens)
        tokens = found.tokens[0, 0].tolist()
        for number, token in enumerate(tokens, start=1):
            yield token, float(found.log_probs[0, 0]) if number == len(tokens) else 0.0

    def inspect(self, text: str | None = None, *, layer: str | None = None) -> "Inspection":
        """Its layers, and what each head attends to in `text`, or in the beginning of its own test text."""
        from quoin.runs.inspect_text import inspect_text

        return inspect_text(self, self._own_text() if text is None else text, layer=layer)

    def _own_text(self) -> str:
        """The beginning of the run's test text, as much as fits into the model and on a page."""
        tokens = self.run.load_task().text.test.in_memory()  # type: ignore[attr-defined]
        return self.tokenizer.decode(tokens[: min(SHOWN_TOKENS, self.window or SHOWN_TOKENS)])

    def codec(self) -> "LanguageCodec":
        """The model as a compressor of files."""
        from quoin.runs.language_codec import LanguageCodec

        return LanguageCodec(self)
