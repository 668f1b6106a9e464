"""Language modelling: next-token prediction with windows or with truncated BPTT, and its metrics and plots.

A model that reads windows forgets between them (`LanguageTask`); a recurrent one carries its state from batch to batch,
cut off from its gradient (`StatefulLanguageTask`: truncated back-propagation through time). Both are evaluated alike,
every character of a split once.
"""

import math
from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from quoin import plot
from quoin.data import (
    BPTTWindows,
    Corpus,
    MarkovSource,
    RandomWindows,
    TextInfo,
    keyed_generator,
    read_windows,
    text_info,
)
from quoin.errors import UserError
from quoin.generate import sample_tokens
from quoin.info import entropy_rate
from quoin.layers import build_position_tables
from quoin.metrics import sliding_window_nll
from quoin.models import RecurrentLanguageModel, RecurrentState, SlidingWindowModel, TransformerLanguageModel
from quoin.plot import Panel
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.optimizer import make_optimizer, weight_decay_groups
from quoin.tasks.pretrained_files import read_pretrained_language_model
from quoin.tasks.sequence_options import LanguageOptions, RecurrentOptions, SequenceOptions
from quoin.tasks.text_data import corpus
from quoin.tasks.transformer_options import TransformerOptions
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics, load_state_dict_strict
from quoin.train.processes import fraction_of
from quoin.train.run_state import fitting
from quoin.train.step_clock import StepClock

__all__ = [
    "LanguageTask",
    "MarkovSourceTask",
    "StatefulLanguageTask",
    "language_task",
    "make_language_optimizer",
    "recurrent_model",
    "stateful_language_task",
]

WARMUP_TOKENS = (
    256  # tokens that a recurrent model reads before those it is evaluated on, so that it has a hidden state
)
EVAL_WINDOW = 1024  # tokens that it is evaluated on after them
SHOWN = 480  # tokens of the plots
PROMPT = "The "  # of the sample that is shown
SPLITS = ("train", "validation", "test")


def _at_least_float32(logits: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """A loss of half precision would lose what a small step changes."""
    return logits if logits.dtype is torch.float64 else logits.float()


def make_language_optimizer(model: nn.Module, options: SequenceOptions) -> torch.optim.Optimizer:
    """The optimizer that `options` name, fused; biases and scales have no weight decay."""
    return make_optimizer(weight_decay_groups(model, options), options, fused=True)


def language_task(
    model: Callable[[Any, TextInfo], nn.Module],
    options: LanguageOptions | TransformerOptions,
    device_context: DeviceContext,
) -> "LanguageTask":
    """The recipe's `model` on random windows of the text that `options` name."""
    text = corpus(options)
    net = model(options, text_info(text)).to(device_context.device)
    return LanguageTask(net, make_language_optimizer(net, options), text, options, device_context)


def stateful_language_task(
    model: Callable[[Any, TextInfo], RecurrentLanguageModel], options: RecurrentOptions, device_context: DeviceContext
) -> "StatefulLanguageTask":
    """The recipe's recurrent `model` on the text that `options` name, its state carried along."""
    text = corpus(options)
    net = model(options, text_info(text)).to(device_context.device)
    return StatefulLanguageTask(net, make_language_optimizer(net, options), text, options, device_context)


def recurrent_model(
    cell: type[nn.RNN] | type[nn.GRU] | type[nn.LSTM], options: RecurrentOptions, data_info: TextInfo
) -> RecurrentLanguageModel:
    """The model of these cells that `options` describe."""
    return RecurrentLanguageModel(
        cell,
        data_info.vocab_size,
        options.embed_dim,
        options.hidden_dim,
        num_layers=options.num_layers,
        dropout=options.dropout,
        tie_embeddings=options.tie_embeddings,
        generator=keyed_generator("weights", options.seed),
    )


class LanguageTask(GradientTask):
    """A model of (b, T) tokens to (b, T, vocab_size) logits is trained on windows of a text in random order."""

    kind = "language-modeling"
    batches: RandomWindows | BPTTWindows

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        text: Corpus,
        options: SequenceOptions,
        device_context: DeviceContext,
    ) -> None:
        self.text, self.options, self.device_context = text, options, device_context
        batches = self.read_from(text)
        super().__init__(
            model,
            optimizer,
            batches,
            device_context,
            epochs=options.epochs,
            schedule=make_lr_schedule(options),
            max_grad_norm=options.max_grad_norm,
            micro_batch_size=options.micro_batch_size,
            loss_scale=batches.length,
        )
        self.data_info = text_info(text)
        self.clock = StepClock(device_context)  # no metric: no two runs agree on it
        build_position_tables(model, batches.length, device_context.device)
        self._step_losses = device_context.compiled(self.losses, self.full_rows)

    def load_pretrained(self) -> list[str]:
        """Fill the model from the run that the options name; what to tell the user of it."""
        pretrained = getattr(self.options, "pretrained", "")
        found = read_pretrained_language_model(pretrained, "transformer-lm")
        with fitting(f"the checkpoint of {pretrained}"):
            load_state_dict_strict(self.model, found.weights)
        return [f"starts from {pretrained}, with its tokenizer of {found.tokenizer.vocab_size} tokens"]

    def read_from(self, text: Corpus) -> RandomWindows | BPTTWindows:
        """The batches of the training split."""
        o, at = self.options, self.device_context
        return RandomWindows(
            text.train.tokens,
            o.context_length,
            o.batch_size,
            seed=o.seed,
            rank=at.rank,
            world_size=at.world_size,
            device=at.device,
        )

    def losses(self, inputs: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch seq"]) -> Float[Tensor, "*losses"]:
        """-ln P(target | its context), one for each position, or their sum where the model computes that by itself."""
        if isinstance(self.model, TransformerLanguageModel):
            return self.model(inputs, targets)
        logits = self.model(inputs)
        return functional.cross_entropy(_at_least_float32(logits.flatten(0, 1)), targets.flatten(), reduction="none")

    def losses_of(
        self, number: int, inputs: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch seq"]
    ) -> Float[Tensor, "batch*seq"]:
        """The losses of the piece of this number of a batch."""
        return self._step_losses(inputs, targets)

    def pieces(
        self, rows: Int[Tensor, "batch"]
    ) -> Iterable[tuple[int, Int[Tensor, "piece seq"], Int[Tensor, "piece seq"]]]:
        for number, piece in enumerate(self.cut(rows)):
            inputs, targets = self.batches.read(piece.rows)
            yield number, inputs, targets

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        """One optimizer step on the windows that begin at `rows`; the mean loss of each window, summed."""
        with self.clock.step():
            mean = super().step(rows)["loss"]
        return {"loss": mean, "bits_per_character": mean * self._tokens_per_character / math.log(2)}

    @property
    def _tokens_per_character(self) -> float:
        return len(self.text.train.tokens) / self.text.train.num_characters

    @property
    def eval_windows(self) -> tuple[int, int]:
        """How long the windows of an evaluation are, and how many of their last tokens count: the latter half."""
        return self.batches.length, -(-self.batches.length // 2)

    def token_nll(
        self, tokens: Int[Tensor, "seq"], fraction: Callable[[int], slice] | None = None
    ) -> Float[Tensor, "predicted"]:
        """-ln P of each token but the first; with `fraction`, of those that a fraction of the windows predicts."""
        window, stride = self.eval_windows
        return sliding_window_nll(self.model.eval(), tokens, window=window, stride=stride, fraction=fraction)

    def evaluate(self, split: str) -> Metrics:
        """Nats and perplexity of a token, bits of a character; of the training split, its last characters, as many as
        the test split has."""
        if split not in SPLITS:
            return {}
        self.clock.settle()
        tokens, num_characters = self._eval_tokens(split)
        own, totals = self.token_nll(tokens, fraction_of), MeanMetrics()
        totals.add({"nats": own.double().sum()}, len(own))
        nats = float(totals.over_processes().sums["nats"])
        if not math.isfinite(nats):
            raise self.updater.diverged(lambda: self.model(tokens[None, : self.batches.length]))
        loss = nats / (len(tokens) - 1)
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return {"loss": loss, "perplexity": perplexity, "bits_per_character": nats / math.log(2) / num_characters}

    def _eval_tokens(self, split: str) -> tuple[Tensor, float]:
        """The tokens to predict, after the one before them, and how many characters they are."""
        found = getattr(self.text, split)
        if split != "train":
            tokens = read_windows(found.tokens, torch.tensor([0]), len(found.tokens))[0]
            return torch.cat([torch.tensor([found.before], device=tokens.device), tokens]).to(
                self.device_context.device
            ), found.num_characters
        count = min(len(self.text.test.tokens), len(found.tokens) - 1)
        tokens = read_windows(found.tokens, torch.tensor([len(found.tokens) - count - 1]), count + 1)[0]
        return tokens.to(self.device_context.device), count / self._tokens_per_character

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"clock": self.clock.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.clock.load_state_dict(state["clock"])

    def panels(self) -> list[Panel]:
        """The beginning of the test text, shaded by what each token cost, and a text that the model wrote."""
        tokens, _ = self._eval_tokens("test")
        tokens = tokens[: SHOWN + 1]
        bits = self.token_nll(tokens).cpu() / math.log(2)
        per_second = self.clock.steps_per_second() * self.options.batch_size * self.batches.length
        speed = f" Training throughput: {per_second:,.0f} tokens per second." if per_second else ""
        costs = (
            f"{float(bits.mean()):.2f} bits per token on this excerpt; the bluer a token, the higher its loss.{speed}"
        )
        caption = f"Sampled from the model with the prompt {PROMPT!r}."
        return [
            Panel(
                "Bits per token on the test text",
                lambda: plot.shaded_text(self._decode(tokens[1:]), bits, label="bits"),
                costs,
            ),
            Panel("Sample", lambda: plot.shaded_text(self._decode(self._written())), caption),
        ]

    def _decode(self, tokens: Tensor) -> list[str]:
        return [self.text.tokenizer.decode([token]) for token in tokens.tolist()]

    def token_model(self) -> Any:
        """The model as it reads a text of any length."""
        return SlidingWindowModel(self.model, self.options.context_length)  # pyright: ignore[reportArgumentType]

    def _written(self) -> Tensor:
        try:
            prompt = self.text.tokenizer.encode(PROMPT)
        except UserError:  # letters that the text has not
            prompt = self._eval_tokens("test")[0][:1].cpu()
        prompt = prompt.unsqueeze(0).to(self.device_context.device)
        model, generator = (
            self.token_model(),
            torch.Generator(self.device_context.device).manual_seed(self.options.seed),
        )
        return sample_tokens(
            model, model.init_cache(1, prompt.shape[1] + SHOWN), prompt, max_tokens=SHOWN, generator=generator
        ).tokens[0]


class StatefulLanguageTask(LanguageTask):
    """Truncated BPTT over contiguous streams of the text: each batch begins where the last ended, with its hidden
    state.

    The state is cut off from its gradient, so that the model learns through `context` tokens and remembers more.
    """

    batches: BPTTWindows  # pyright: ignore[reportIncompatibleVariableOverride]: `read_from` gives no others

    def __init__(
        self,
        model: RecurrentLanguageModel,
        optimizer: torch.optim.Optimizer,
        text: Corpus,
        options: SequenceOptions,
        device_context: DeviceContext,
    ) -> None:
        super().__init__(model, optimizer, text, options, device_context)
        self.hidden_states: list[
            RecurrentState
        ] = []  # one for each piece of the batch; empty at the beginning of an epoch
        self._stateful_losses = device_context.compiled(self.stateful_losses, self.full_rows)

    def read_from(self, text: Corpus) -> BPTTWindows:
        o, at = self.options, self.device_context
        return BPTTWindows(
            text.train.tokens,
            o.batch_size,
            o.context_length,
            seed=o.seed,
            rank=at.rank,
            world_size=at.world_size,
            device=at.device,
        )

    def stateful_losses(
        self, inputs: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch seq"], state: RecurrentState
    ) -> tuple[Float[Tensor, "batch*seq"], RecurrentState]:
        """The losses of a batch after `state_dict`, and the state after it."""
        logits, after = self.model.read(state, inputs)
        return functional.cross_entropy(
            _at_least_float32(logits.flatten(0, 1)), targets.flatten(), reduction="none"
        ), after

    def losses_of(
        self, number: int, inputs: Int[Tensor, "batch seq"], targets: Int[Tensor, "batch seq"]
    ) -> Float[Tensor, "batch*seq"]:
        if number == 0 and self.batches.position <= 1:
            self.hidden_states = []
        if number == len(self.hidden_states):
            self.hidden_states.append(self.model.init_cache(len(inputs), 0))
        losses, after = self._stateful_losses(inputs, targets, self.hidden_states[number])
        self.hidden_states[number] = after.detach()
        return losses

    def token_model(self) -> Any:
        return self.model

    @property
    def eval_windows(self) -> tuple[int, int]:
        """Streams that begin with warmup tokens, which do not count."""
        return WARMUP_TOKENS + EVAL_WINDOW, EVAL_WINDOW

    def state_dict(self) -> dict[str, Any]:
        return super().state_dict() | {"hidden_states": [list(each.tensors) for each in self.hidden_states]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        super().load_state_dict(state)
        self.hidden_states = [RecurrentState(tuple(each)) for each in state["hidden_states"]]


class MarkovSourceTask(StatefulLanguageTask):
    """A recurrent model of a source of known entropy rate, evaluated by its redundancy too."""

    def __init__(
        self,
        model: RecurrentLanguageModel,
        optimizer: torch.optim.Optimizer,
        text: Corpus,
        source: MarkovSource,
        options: SequenceOptions,
        device_context: DeviceContext,
    ) -> None:
        super().__init__(model, optimizer, text, options, device_context)
        self.entropy_rate = float(entropy_rate(source.chain)) / math.log(2)  # bits a symbol

    def evaluate(self, split: str) -> Metrics:
        found = super().evaluate(split)
        rate = self.entropy_rate
        return (
            found | {"entropy_rate": rate, "relative_redundancy": found["bits_per_character"] / rate - 1}
            if found
            else found
        )
