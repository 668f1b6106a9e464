"""Learn to say what comes next: the tasks of language models, and what is told of them.

A model that reads windows forgets between them (`LanguageTask`); a recurrent one carries its state from batch to batch, cut off from
its gradient (`CarriedLanguageTask`: truncated back-propagation through time). Both are judged alike, every character of a part once.
"""

import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from quoin import plot
from quoin.data import (
    CarriedLanes,
    Corpus,
    MarkovSource,
    RandomWindows,
    TextFacts,
    facts_of_text,
    keyed_generator,
    load_corpus,
    read_windows,
)
from quoin.errors import Mistake
from quoin.generate import sampled
from quoin.info import entropy_rate
from quoin.metrics import sliding_token_nll
from quoin.models import RecurrentLanguageModel, RecurrentState, SlidingContext
from quoin.plot import Panel
from quoin.tasks.lr_schedule import schedule
from quoin.tasks.options import LanguageOptions, RecurrentOptions, SequenceOptions, TextOptions
from quoin.train import GradientTask, Metrics, Place

__all__ = [
    "CarriedLanguageTask",
    "LanguageTask",
    "MarkovSourceTask",
    "adam",
    "carried_language_task",
    "corpus",
    "language_task",
    "recurrent_model",
]

WARM_UP = 256  # tokens that a recurrent model reads before what it is judged on, so that it has a state
LANE = 1024  # tokens that it is judged on after them
SHOWN = 480  # tokens of the pictures
TELLING = "The "  # what the model is asked to go on from
PARTS = ("train", "validation", "test")


def corpus(options: TextOptions) -> Corpus:
    """The text that `options` name, in tokens."""
    return load_corpus(options.data, options.vocabulary, options.vocabulary_size)


def adam(model: nn.Module, options: SequenceOptions) -> torch.optim.Optimizer:
    """AdamW; the pull towards zero is for weights that multiply inputs: biases and scales, all vectors, stay free."""
    groups = [
        {"params": [each for each in model.parameters() if each.ndim > 1], "weight_decay": options.weight_decay},
        {"params": [each for each in model.parameters() if each.ndim <= 1], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW([group for group in groups if group["params"]], options.lr, betas=(0.9, 0.99), fused=True)


def language_task(model: Callable[[Any, TextFacts], nn.Module], options: LanguageOptions, place: Place) -> "LanguageTask":
    """The recipe's `model` on random windows of the text that `options` name."""
    text = corpus(options)
    net = model(options, facts_of_text(text)).to(place.device)
    return LanguageTask(net, adam(net, options), text, options, place)


def carried_language_task(
    model: Callable[[Any, TextFacts], RecurrentLanguageModel], options: RecurrentOptions, place: Place
) -> "CarriedLanguageTask":
    """The recipe's recurrent `model` on the text that `options` name, its state carried along."""
    text = corpus(options)
    net = model(options, facts_of_text(text)).to(place.device)
    return CarriedLanguageTask(net, adam(net, options), text, options, place)


def recurrent_model(
    cell: type[nn.RNN] | type[nn.GRU] | type[nn.LSTM], options: RecurrentOptions, facts: TextFacts
) -> RecurrentLanguageModel:
    """The model of these cells that `options` describe."""
    return RecurrentLanguageModel(
        cell,
        facts.vocabulary_size,
        options.width,
        options.hidden,
        layers=options.layers,
        dropout=options.dropout,
        tied=options.tied,
        generator=keyed_generator("weights", options.seed),
    )


class LanguageTask(GradientTask):
    """A model of (b, T) tokens to (b, T, vocabulary) logits learns from windows of a text in random order."""

    kind = "language-modeling"
    batches: RandomWindows | CarriedLanes

    def __init__(self, model: nn.Module, optimizer: torch.optim.Optimizer, text: Corpus, options: SequenceOptions, place: Place) -> None:
        self.text, self.options, self.place = text, options, place
        batches = self.read_from(text)
        super().__init__(
            model,
            optimizer,
            batches,
            place,
            epochs=options.epochs,
            schedule=schedule(options),
            max_grad_norm=options.clip,
            micro_batch=options.micro_batch,
            loss_scale=batches.length,
        )
        self.facts = facts_of_text(text)
        self.seconds = 0.0  # spent in updates. No metric: no two runs agree on it
        self._losses = place.compiled(self.losses)

    def read_from(self, text: Corpus) -> RandomWindows | CarriedLanes:
        """The batches of the training part."""
        o, at = self.options, self.place
        return RandomWindows(
            text.train.tokens, o.context, o.batch_size, seed=o.seed, rank=at.rank, world=at.world, device=at.device
        )  # fmt: skip

    def losses(self, inputs: Tensor, targets: Tensor) -> Tensor:  # (b, T), (b, T) -> (b T,)
        """-ln P(target | what came before it), one for each position."""
        logits = self.model(inputs)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none")

    def losses_of(self, number: int, inputs: Tensor, targets: Tensor) -> Tensor:
        """The losses of the piece of this number of a batch."""
        return self._losses(inputs, targets)

    def pieces(self, rows: Tensor) -> Iterable[tuple[int, Tensor, Tensor]]:
        inputs, targets = self.batches.read(rows)
        for number, piece in enumerate(zip(inputs.split(self.micro_batch), targets.split(self.micro_batch))):
            yield number, *piece

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One optimizer step on the windows that begin at `rows`; the mean loss of each window, summed."""
        began = time.perf_counter()
        mean = super().step(rows)["loss"]
        self.seconds += time.perf_counter() - began
        return {"loss": mean, "bits_per_character": mean * self._tokens_per_character / math.log(2)}

    @property
    def _tokens_per_character(self) -> float:
        return len(self.text.train.tokens) / self.text.train.num_characters

    def token_nll(self, tokens: Tensor) -> Tensor:  # (n + 1,) -> (n,)
        """-ln P of each token but the first, by windows of which the latter half counts."""
        return sliding_token_nll(self.model.eval(), tokens, window=self.batches.length, fresh=-(-self.batches.length // 2))

    def evaluate(self, part: str) -> Metrics:
        """Nats and perplexity of a token, bits of a character; of the training part, its last characters, as many as the test part has."""
        if part not in PARTS:
            return {}
        tokens, num_characters = self._judged(part)
        nats = float(self.token_nll(tokens).double().sum())
        if not math.isfinite(nats):
            raise self.updater.diverged(lambda: self.model(tokens[None, : self.batches.length]))
        loss = nats / (len(tokens) - 1)
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return {"loss": loss, "perplexity": perplexity, "bits_per_character": nats / math.log(2) / num_characters}

    def _judged(self, part: str) -> tuple[Tensor, float]:
        """The tokens to predict, after the one before them, and how many characters they are."""
        found = getattr(self.text, part)
        if part != "train":
            tokens = read_windows(found.tokens, torch.tensor([0]), len(found.tokens))[0]
            return torch.cat([torch.tensor([found.before], device=tokens.device), tokens]).to(self.place.device), found.num_characters
        count = min(len(self.text.test.tokens), len(found.tokens) - 1)
        tokens = read_windows(found.tokens, torch.tensor([len(found.tokens) - count - 1]), count + 1)[0]
        return tokens.to(self.place.device), count / self._tokens_per_character

    def state(self) -> dict[str, Any]:
        return super().state() | {"seconds": self.seconds}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.seconds = state["seconds"]

    def panels(self) -> list[Panel]:
        """The beginning of the test text, shaded by what each token cost, and a text that the model wrote."""
        tokens, _ = self._judged("test")
        tokens = tokens[: SHOWN + 1]
        bits = self.token_nll(tokens).cpu() / math.log(2)
        read = self.step_count * self.options.batch_size * self.batches.length
        speed = f" It learnt from {read / self.seconds:,.0f} tokens a second." if self.seconds else ""
        said = f"{float(bits.mean()):.2f} bits a token here: pale where the model knew what was to come, dark where it did not.{speed}"
        told = f"Drawn token by token from the model's own law, after {TELLING!r}."
        return [
            Panel("What the test text costs", lambda: plot.writing(self._spelt(tokens[1:]), bits, label="bits"), said),
            Panel("What the model writes", lambda: plot.writing(self._spelt(self._written())), told),
        ]

    def _spelt(self, tokens: Tensor) -> list[str]:
        return [self.text.vocabulary.decode([token]) for token in tokens.tolist()]

    def reader(self) -> Any:
        """The model as it reads a text of any length."""
        return SlidingContext(self.model, self.options.context)  # pyright: ignore[reportArgumentType]

    def _written(self) -> Tensor:
        try:
            prompt = self.text.vocabulary.encode(TELLING)
        except Mistake:  # letters that the text has not
            prompt = self._judged("test")[0][:1].cpu()
        prompt = prompt.unsqueeze(0).to(self.place.device)
        model, chance = self.reader(), torch.Generator(self.place.device).manual_seed(self.options.seed)
        return sampled(model, model.start(1, prompt.shape[1] + SHOWN), prompt, max_tokens=SHOWN, generator=chance).tokens[0]


class CarriedLanguageTask(LanguageTask):
    """A recurrent model learns from a text read in lanes, each batch where the last ended, with the state that it ended with.

    The state is cut off from its gradient, so that the model learns through `context` tokens and remembers more.
    """

    batches: CarriedLanes

    def __init__(
        self, model: RecurrentLanguageModel, optimizer: torch.optim.Optimizer, text: Corpus, options: SequenceOptions, place: Place
    ) -> None:
        super().__init__(model, optimizer, text, options, place)
        self.carried: list[RecurrentState] = []  # one for each piece of the batch; empty at the beginning of an epoch
        self._carried_losses = place.compiled(self.carried_losses)

    def read_from(self, text: Corpus) -> CarriedLanes:
        o, at = self.options, self.place
        return CarriedLanes(
            text.train.tokens, o.batch_size, o.context, seed=o.seed, rank=at.rank, world=at.world, device=at.device
        )  # fmt: skip

    def carried_losses(self, inputs: Tensor, targets: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """The losses of a batch after `state`, and the state after it."""
        logits, after = self.model.read(state, inputs)
        return functional.cross_entropy(logits.flatten(0, 1).float(), targets.flatten(), reduction="none"), after

    def losses_of(self, number: int, inputs: Tensor, targets: Tensor) -> Tensor:
        if number == 0 and self.batches.position <= 1:
            self.carried = []
        if number == len(self.carried):
            self.carried.append(self.model.start(len(inputs), 0))
        losses, after = self._carried_losses(inputs, targets, self.carried[number])
        self.carried[number] = after.detach()
        return losses

    def reader(self) -> Any:
        return self.model

    def token_nll(self, tokens: Tensor) -> Tensor:
        """-ln P of each token but the first, in lanes that begin with tokens that are only read."""
        return sliding_token_nll(self.model.eval(), tokens, window=WARM_UP + LANE, fresh=LANE)

    def state(self) -> dict[str, Any]:
        return super().state() | {"carried": [list(each.tensors) for each in self.carried]}

    def load(self, state: dict[str, Any]) -> None:
        super().load(state)
        self.carried = [RecurrentState(tuple(each)) for each in state["carried"]]


class MarkovSourceTask(CarriedLanguageTask):
    """A recurrent model of what a source of known entropy rate wrote, judged by how far it is from that too."""

    def __init__(
        self,
        model: RecurrentLanguageModel,
        optimizer: torch.optim.Optimizer,
        text: Corpus,
        source: MarkovSource,
        options: SequenceOptions,
        place: Place,
    ) -> None:
        super().__init__(model, optimizer, text, options, place)
        self.entropy_rate = float(entropy_rate(source.chain)) / math.log(2)  # bits a symbol

    def evaluate(self, part: str) -> Metrics:
        found = super().evaluate(part)
        rate = self.entropy_rate
        return found | {"entropy_rate": rate, "excess": found["bits_per_character"] / rate - 1} if found else found
