"""The copy task: models that differ in nothing but their inner attention, trained on the same sequences."""

import functools
import time
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional

from quoin import plot
from quoin.data import BatchSampler, CopySequences, keyed_generator, make_copy_sequences
from quoin.display import format_number
from quoin.layers import (
    EluPlusOne,
    ExactAttention,
    FeatureMapAttention,
    InnerAttention,
    PerformerFeatures,
    orthogonal_random_matrix,
)
from quoin.models import CopyTransformer
from quoin.optim import cosine, with_warmup
from quoin.plot import Panel
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.sequence_options import CopyOptions
from quoin.train import DeviceContext, GradientUpdater, Metrics, load_state_dict_strict

__all__ = ["ATTENTIONS", "CopyTask", "copy_transformer"]

ATTENTIONS = {"exact": "exact", "linear": "linear, elu + 1", "performer": "Performer"}
HELD_OUT = 512  # sequences to validate with, and as many to test
SEQUENCES_PER_READ = 128  # of them that are read together
LONGEST_SHOWN = 64  # symbols of a copy whose attention weights are plotted


def copy_transformer(attention: str, options: CopyOptions, features: int | None = None) -> CopyTransformer:
    """The model with this inner attention; its initial weights, but for Performer's random projection, are the same in
    all."""
    directions = keyed_generator("directions", options.seed)
    return CopyTransformer(
        options.num_symbols + 1,
        options.embed_dim,
        num_heads=options.num_heads,
        num_layers=options.num_layers,
        make_attention=functools.partial(
            _inner_attention, attention, options, features or options.num_features, directions
        ),
        generator=keyed_generator("weights", options.seed),
    )


def _inner_attention(
    attention: str, options: CopyOptions, features: int, directions: torch.Generator
) -> InnerAttention:
    if attention == "exact":
        return ExactAttention()
    if attention == "linear":
        return FeatureMapAttention(EluPlusOne())
    head_dim = max(
        1, options.embed_dim // options.num_heads
    )  # a number of heads that does not divide is an error of the model
    return FeatureMapAttention(
        PerformerFeatures(head_dim, features, generator=directions, random_matrix=orthogonal_random_matrix)
    )


class CopyTask:
    """A model for each inner attention: every step trains all on one batch of new sequences. `primary` names the one
    that the run is about.

    `swaps` are numbers of features with which Performer's attention is tried on the weights that exact attention
    learned.
    """

    kind = "study"
    data_info = None

    def __init__(
        self, primary: str, options: CopyOptions, device_context: DeviceContext, swaps: Sequence[int] = ()
    ) -> None:
        self.primary, self.options, self.device_context, self.swaps = primary, options, device_context, swaps
        self.splits = {split: self._sequences(HELD_OUT, split) for split in ("validation", "test")}
        self.batches = BatchSampler(options.num_rows, options.batch_size, seed=options.seed, shuffle=False)
        self.models = {name: copy_transformer(name, options).to(device_context.device) for name in ATTENTIONS}
        self.updaters = {
            name: GradientUpdater(
                model,
                make_optimizer(model.parameters(), options),
                total_steps=options.epochs * self.batches.num_batches,
                device_context=device_context,
                schedule=with_warmup(cosine, 0.1),
                max_grad_norm=1.0,
                name=f"the loss of {name}",
            )
            for name, model in self.models.items()
        }
        self.accuracies: dict[str, list[float]] = {name: [] for name in ATTENTIONS}  # validation, after each epoch
        self.seconds = dict.fromkeys(ATTENTIONS, 0.0)  # spent in optimizer steps. No metric: no two runs agree on it

    def _sequences(self, count: int, *key: str | int) -> CopySequences:
        generator = keyed_generator("copy", self.options.seed, *key)
        made = make_copy_sequences(count, self.options.sequence_length, self.options.num_symbols, generator=generator)
        return made._replace(
            symbols=made.symbols.to(self.device_context.device), answers=made.answers.to(self.device_context.device)
        )

    @property
    def step_count(self) -> int:
        """Optimizer steps of every model."""
        return self.updaters[self.primary].step_count

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        batch = self._sequences(len(rows), self.step_count)
        losses = {name: self._update(name, batch) * len(rows) for name in ATTENTIONS}
        if self.batches.position == self.batches.num_batches:
            for name, model in self.models.items():
                self.accuracies[name].append(self.correct(model, "validation").mean().item())
        return {"loss": losses[self.primary]} | {f"loss_{name}": loss for name, loss in losses.items()}

    def _update(self, name: str, batch: CopySequences) -> Tensor:  # -> ()
        began = time.perf_counter()
        loss = self.updaters[name].update([(self.models[name].train(), batch)], self._loss, weight=1.0)
        self.seconds[name] += time.perf_counter() - began
        return loss

    def _loss(self, model: CopyTransformer, batch: CopySequences) -> Tensor:  # -> ()
        scores = model(batch.symbols)[:, -self.options.sequence_length :]
        return functional.cross_entropy(scores.flatten(0, 1).float(), batch.answers.flatten())

    def evaluate(self, split: str) -> Metrics:
        if split not in self.splits:
            return {}  # no sequence of training is seen twice
        found = {name: self.correct(model, split) for name, model in self.models.items()}
        accuracies = {f"accuracy_{name}": value.mean().item() for name, value in found.items()}
        whole = {f"whole_{name}": value.all(dim=1).double().mean().item() for name, value in found.items()}
        swapped = {f"swapped_{number}": self.swapped(number) for number in self.swaps} if split == "test" else {}
        return {"accuracy": accuracies[f"accuracy_{self.primary}"]} | accuracies | whole | swapped

    @torch.no_grad()
    def correct(self, model: CopyTransformer, split: str) -> Float[Tensor, "sequences length"]:
        """1 where the model's most probable next symbol is correct, else 0."""
        model.eval()
        pieces = zip(
            self.splits[split].symbols.split(SEQUENCES_PER_READ), self.splits[split].answers.split(SEQUENCES_PER_READ)
        )
        return (
            torch.cat(
                [
                    model(symbols)[:, -self.options.sequence_length :].argmax(-1) == answers
                    for symbols, answers in pieces
                ]
            )
            .double()
            .cpu()
        )

    def swapped(self, number: int) -> float:
        """The accuracy of the exact model's weights under Performer attention with so many features, without
        training."""
        other = copy_transformer("performer", self.options, number).to(self.device_context.device)
        other.load_state_dict(dict(self.models["exact"].named_parameters()), strict=False)  # its directions stay
        return self.correct(other, "test").mean().item()

    def state_dict(self) -> dict[str, Any]:
        for updater in self.updaters.values():
            updater.check_parameters()
        models = {
            name: {
                "weights": self.models[name].state_dict(),
                "updater": each.state_dict(),
                "accuracies": self.accuracies[name],
            }
            for name, each in self.updaters.items()
        }
        model = {"weights": self.models[self.primary].state_dict()}
        return {"model": model, "models": models, "batches": self.batches.state_dict(), "seconds": self.seconds}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, updater in self.updaters.items():
            load_state_dict_strict(self.models[name], state["models"][name]["weights"])
            updater.load_state_dict(state["models"][name]["updater"])
            self.accuracies[name] = state["models"][name]["accuracies"]
        self.batches.load_state_dict(state["batches"])
        self.seconds = state["seconds"]

    def panels(self) -> list[Panel]:
        """Accuracy by epoch and by position, transferred weights, and attention weights."""
        return [*self._by_epoch(), self._by_position(), *self._swaps(), *self._attention()] if self.step_count else []

    @property
    def _chance(self) -> dict[str, float]:
        return {"chance": 1 / self.options.num_symbols}

    def _by_epoch(self) -> list[Panel]:
        curves = {
            ATTENTIONS[name]: (list(range(1, len(each) + 1)), each) for name, each in self.accuracies.items() if each
        }
        caption = "From the same initial weights, on the same sequences, at the same learning rate."
        content = functools.partial(
            plot.curves, curves, x_label="epoch", y_label="validation accuracy", reference_lines=self._chance
        )
        return [Panel("Accuracy by epoch", content, caption)] if curves else []

    def _by_position(self) -> Panel:
        found = {name: self.correct(model, "test").mean(dim=0) for name, model in self.models.items()}
        table = "; ".join(
            f"{ATTENTIONS[name]} {format_number(float(value.mean()))}, "
            f"{1000 * self.seconds[name] / self.step_count:.1f} ms per step"
            for name, value in found.items()
        )
        curves = {
            ATTENTIONS[name]: (list(range(1, self.options.sequence_length + 1)), value.tolist())
            for name, value in found.items()
        }
        return Panel(
            "Accuracy by position",
            lambda: plot.curves(
                curves, x_label="position in the copy", y_label="test accuracy", reference_lines=self._chance
            ),
            f"Fraction of {HELD_OUT} new sequences with the correct symbol at each position. Over all positions: "
            f"{table}.",
        )

    def _swaps(self) -> list[Panel]:
        if not self.swaps:
            return []
        numbers = sorted(set(self.swaps))
        accuracies = {
            "exact attention's weights under Performer attention": (
                numbers,
                [self.swapped(number) for number in numbers],
            )
        }
        levels = {
            f"trained with {self.options.num_features} features": self.correct(self.models["performer"], "test")
            .mean()
            .item()
        } | self._chance
        caption = (
            "Performer attention estimates softmax attention, so weights can be transferred; but copying needs "
            "sharp attention, with large "
            "queries and keys, where the estimates vary most. Training with the features finds weights that "
            "tolerate them."
        )
        content = functools.partial(
            plot.curves, accuracies, x_label="features", y_label="test accuracy", log_x=True, reference_lines=levels
        )
        return [Panel("Transferred weights", content, caption)]

    @torch.no_grad()
    def _attention(self) -> list[Panel]:
        """Attention weights of the first block while it copies, if the sequence is short enough to be plotted."""
        if self.options.sequence_length > LONGEST_SHOWN:
            return []
        maps = {}
        for name, model in self.models.items():
            net: Any = model.eval()
            block = net.blocks[0]
            seen = block.norms[0](net.position_embedding(net.token_embedding(self.splits["test"].symbols[:1])))
            maps[ATTENTIONS[name]] = (
                block.attention.attend_with_weights(seen, causal=True)
                .weights[0, :, -self.options.sequence_length :]
                .cpu()
            )
        caption = (
            "Attention weights of the heads of the first block in one test sequence: a row for each position of "
            "the copy, a column for "
            "each symbol before it. Copying attends a fixed distance back, along a diagonal."
        )
        return [Panel("Attention weights", lambda: plot.feature_map_rows(maps), caption)]
