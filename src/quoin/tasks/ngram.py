"""Learn by counting: the task of n-gram models, which follows no gradient."""

import math
from collections.abc import Callable
from typing import Any, Literal, Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from quoin import plot
from quoin.data import BatchSampler, Corpus, TextInfo, text_info
from quoin.errors import UserError
from quoin.metrics import bits_per_character
from quoin.models import NgramCounts, NgramModel, kneser_ney_ngram, laplace_ngram, ngram_counts
from quoin.plot import Panel
from quoin.train import Metrics, NonFiniteLossError, load_state_dict_strict

__all__ = ["NgramOptions", "NgramTask"]


class NgramOptions(Protocol):
    """What the task reads of its recipe's options."""

    @property
    def seed(self) -> int: ...

    @property
    def epochs(self) -> int: ...

    @property
    def order(self) -> int: ...

    @property
    def smoothing(self) -> Literal["kneser-ney", "laplace", "dirichlet"]: ...

    @property
    def pseudo_counts(self) -> tuple[float, ...]: ...


class NgramTask:
    """Each epoch counts the n-grams of twice as much of the training text as the last, the final one those of all.

    So the run shows what more text is worth, for twice the time of one count. It works on the CPU, where tables are
    looked up as quickly as anywhere, with the whole training text in memory.
    """

    kind = "language-modeling"

    def __init__(self, text: Corpus, model: Callable[[Any, TextInfo], NgramModel], options: NgramOptions) -> None:
        self.text, self.options = text, options
        self.data_info = text_info(text)
        self.model: NgramModel = model(options, self.data_info)
        self.tokens = text.train.in_memory().cpu()
        if len(self.tokens) < options.order:
            raise UserError(
                f"expected at least {options.order} tokens of training text for n-grams of that many, got "
                f"{len(self.tokens)}: "
                "give a longer text, or lower --order"
            )
        if len(options.pseudo_counts) not in (1, options.order):
            raise UserError(
                f"--pseudo-counts expects one number, or one for each length up to --order {options.order}, got "
                f"{len(options.pseudo_counts)}"
            )
        self.batches = BatchSampler(1, 1, seed=options.seed, shuffle=False)  # one step an epoch

    def counted(self) -> Int[Tensor, "seq"]:
        """The piece of the training text that this epoch counts."""
        halvings = max(0, self.options.epochs - 1 - self.batches.epoch)
        return self.tokens[: max(self.options.order, len(self.tokens) >> halvings)]

    def smoothed(self, counts: NgramCounts) -> NgramModel:
        if self.options.smoothing == "kneser-ney":
            return kneser_ney_ngram(counts)
        given = self.options.pseudo_counts
        pseudo_counts = given * counts.order if len(given) == 1 else given[: counts.order]
        if self.options.smoothing == "laplace" and counts.order > 2:
            # An infinite one passes over its length: the longest context falls back on single tokens.
            pseudo_counts = (pseudo_counts[0], *[math.inf] * (counts.order - 2), pseudo_counts[-1])
        return laplace_ngram(counts, pseudo_counts)

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        """Count; the loss is that of the last of the counted text, as much of it as the test split has."""
        counted = self.counted()
        self.model = self.smoothed(ngram_counts(counted, self.model.vocab_size, self.options.order))
        nats = self._nats(self.model, counted[-len(self.text.test.tokens) - 1 :])
        return {"loss": torch.tensor(nats / max(1, min(len(self.text.test.tokens), len(counted) - 1)))}

    def _nats(self, model: NgramModel, tokens: Tensor) -> float:
        """-ln P of all tokens but the first."""
        return -float(model.token_log_probs(tokens[None])[:, 1:].double().sum())

    def _eval_tokens(self, split: str) -> tuple[Tensor, int]:
        """The tokens to predict, after the one before them, and how many characters they are."""
        found = getattr(self.text, split)
        tokens = found.in_memory().cpu()
        return (
            tokens if found.before is None else torch.cat([torch.tensor([found.before]), tokens])
        ), found.num_characters

    def evaluate(self, split: str) -> Metrics:
        """Nats and perplexity of a token, bits of a character; every token is predicted once, but the first of the
        whole text."""
        if split not in ("train", "validation", "test"):
            return {}
        tokens, num_characters = self._eval_tokens(split)
        nats = self._nats(self.model, tokens)
        if not math.isfinite(nats):
            raise NonFiniteLossError(
                f"a token of the {split} text has probability 0 by these counts: raise --pseudo-counts or take "
                "--smoothing kneser-ney"
            )
        loss = nats / (len(tokens) - 1)
        bits = bits_per_character(torch.tensor(nats, dtype=torch.float64), num_characters)
        perplexity = math.exp(loss) if loss < 700 else math.inf
        return {"loss": loss, "perplexity": perplexity, "bits_per_character": float(bits)}

    def state_dict(self) -> dict[str, Any]:
        return {"model": {"weights": self.model.state_dict()}, "batches": self.batches.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_state_dict_strict(self.model, state["model"]["weights"])
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list[Panel]:
        """What longer n-grams are worth: the same smoothing at every order up to this one, all the training text
        counted."""
        counts = ngram_counts(self.tokens, self.model.vocab_size, self.options.order)
        orders = list(range(1, min(self.options.order, 20) + 1))
        lines = {}
        for split in ("validation", "test"):
            tokens, num_characters = self._eval_tokens(split)
            nats = torch.tensor(
                [self._nats(self.smoothed(counts.up_to(order)), tokens) for order in orders], dtype=torch.float64
            )
            lines[split] = (orders, bits_per_character(nats, num_characters))
        levels = {
            "uniform distribution": math.log2(self.model.vocab_size)
            * self.data_info.num_tokens
            / self.data_info.num_characters
        }
        return [
            Panel(
                "Bits per character by order",
                lambda: plot.curves(lines, x_label="order n", y_label="bits per character", reference_lines=levels),
                "Each order smooths with all shorter ones; the dashed line is the uniform distribution.",
            )
        ]
