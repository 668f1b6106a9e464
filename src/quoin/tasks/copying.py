"""Learn to copy: the task of readers that are alike but in how they attend and learn from the same sequences, side by side."""

import functools
import time
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from quoin import plot
from quoin.data import Batches, CopySequences, copy_sequences, keyed_generator
from quoin.layers import AttentionCore, EluPlusOne, ExactAttention, FeatureMapAttention, PerformerFeatures, orthogonal_directions
from quoin.models import CopyReader
from quoin.optim import cosine, with_warm_up
from quoin.plot import Panel
from quoin.tasks.options import CopyOptions
from quoin.train import GradientUpdater, Metrics, Place, load_strictly

__all__ = ["ATTENTIONS", "CopyTask", "reader"]

ATTENTIONS = {"exact": "exact", "linear": "linear, elu + 1", "performer": "Performer"}
HELD_OUT = 512  # sequences to validate with, and as many to test
SEQUENCES_PER_READ = 128  # of them that are read together
LONGEST_SHOWN = 64  # symbols of a copy whose attention is drawn


def reader(attention: str, options: CopyOptions, features: int | None = None) -> CopyReader:
    """The reader that attends in this way; its weights, but for Performer's directions, are the same in all ways."""
    directions = keyed_generator("directions", options.seed)
    return CopyReader(
        options.symbols + 1,
        options.width,
        heads=options.heads,
        depth=options.depth,
        make_core=functools.partial(_inner_attention, attention, options, features or options.features, directions),
        generator=keyed_generator("weights", options.seed),
    )


def _inner_attention(attention: str, options: CopyOptions, features: int, directions: torch.Generator) -> AttentionCore:
    if attention == "exact":
        return ExactAttention()
    if attention == "linear":
        return FeatureMapAttention(EluPlusOne())
    width = max(1, options.width // options.heads)  # a number of heads that does not divide is told by the reader
    return FeatureMapAttention(PerformerFeatures(width, features, generator=directions, law=orthogonal_directions))


class CopyTask:
    """A reader for each way to attend: every step shows one batch of new sequences to all. `kept` names the one that the run is about.

    `swaps` are numbers of features with which Performer's attention is tried on the weights that exact attention learned.
    """

    kind = "study"
    facts = None

    def __init__(self, kept: str, options: CopyOptions, place: Place, swaps: Sequence[int] = ()) -> None:
        self.kept, self.options, self.place, self.swaps = kept, options, place, swaps
        self.parts = {part: self._sequences(HELD_OUT, part) for part in ("validation", "test")}
        self.batches = Batches(options.rows, options.batch_size, seed=options.seed, shuffle=False)
        self.models = {name: reader(name, options).to(place.device) for name in ATTENTIONS}
        self.updaters = {
            name: GradientUpdater(
                model,
                torch.optim.Adam(model.parameters(), options.lr),
                total_steps=options.epochs * self.batches.num_batches,
                place=place,
                schedule=with_warm_up(cosine, 0.1),
                max_grad_norm=1.0,
                name=f"the loss of {name}",
            )
            for name, model in self.models.items()
        }
        self.accuracies: dict[str, list[float]] = {name: [] for name in ATTENTIONS}  # on the validation part, after each epoch
        self.seconds = dict.fromkeys(ATTENTIONS, 0.0)  # spent in updates. No metric: no two runs agree on it

    def _sequences(self, count: int, *key: str | int) -> CopySequences:
        generator = keyed_generator("copy", self.options.seed, *key)
        made = copy_sequences(count, self.options.length, self.options.symbols, generator=generator)
        return made._replace(symbols=made.symbols.to(self.place.device), answers=made.answers.to(self.place.device))

    @property
    def step_count(self) -> int:
        """Steps that every reader has made."""
        return self.updaters[self.kept].step_count

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        batch = self._sequences(len(rows), self.step_count)
        losses = {name: self._update(name, batch) * len(rows) for name in ATTENTIONS}
        if self.batches.position == self.batches.num_batches:
            for name, model in self.models.items():
                self.accuracies[name].append(self.right(model, "validation").mean().item())
        return {"loss": losses[self.kept]} | {f"loss_{name}": loss for name, loss in losses.items()}

    def _update(self, name: str, batch: CopySequences) -> Tensor:  # -> ()
        began = time.perf_counter()
        loss = self.updaters[name].update([(self.models[name].train(), batch)], self._loss, weight=1.0)
        self.seconds[name] += time.perf_counter() - began
        return loss

    def _loss(self, model: CopyReader, batch: CopySequences) -> Tensor:  # -> ()
        scores = model(batch.symbols)[:, -self.options.length :]
        return functional.cross_entropy(scores.flatten(0, 1).float(), batch.answers.flatten())

    def evaluate(self, part: str) -> Metrics:
        if part not in self.parts:
            return {}  # no sequence of training is seen twice
        found = {name: self.right(model, part) for name, model in self.models.items()}
        told = {f"accuracy_{name}": value.mean().item() for name, value in found.items()}
        whole = {f"whole_{name}": value.all(dim=1).double().mean().item() for name, value in found.items()}
        swapped = {f"swapped_{number}": self.swapped(number) for number in self.swaps} if part == "test" else {}
        return {"accuracy": told[f"accuracy_{self.kept}"]} | told | whole | swapped

    @torch.no_grad()
    def right(self, model: CopyReader, part: str) -> Tensor:  # -> (sequences, length)
        """1 where the likeliest next symbol of this reader is the right one, else 0."""
        model.eval()
        pieces = zip(self.parts[part].symbols.split(SEQUENCES_PER_READ), self.parts[part].answers.split(SEQUENCES_PER_READ))
        return torch.cat([model(symbols)[:, -self.options.length :].argmax(-1) == answers for symbols, answers in pieces]).double().cpu()

    def swapped(self, number: int) -> float:
        """The accuracy of the exact reader's weights under Performer's attention with so many features, without learning again."""
        other = reader("performer", self.options, number).to(self.place.device)
        other.load_state_dict(dict(self.models["exact"].named_parameters()), strict=False)  # its directions stay
        return self.right(other, "test").mean().item()

    def state(self) -> dict[str, Any]:
        for updater in self.updaters.values():
            updater.check_parameters()
        readers = {
            name: {"weights": self.models[name].state_dict(), "updater": each.state_dict(), "accuracies": self.accuracies[name]}
            for name, each in self.updaters.items()
        }
        model = {"weights": self.models[self.kept].state_dict()}
        return {"model": model, "readers": readers, "batches": self.batches.state(), "seconds": self.seconds}

    def load(self, state: dict[str, Any]) -> None:
        for name, updater in self.updaters.items():
            load_strictly(self.models[name], state["readers"][name]["weights"])
            updater.load_state_dict(state["readers"][name]["updater"])
            self.accuracies[name] = state["readers"][name]["accuracies"]
        self.batches.load(state["batches"])
        self.seconds = state["seconds"]

    def panels(self) -> list[Panel]:
        """Accuracy by epoch and by place, weights that were taken over, and where the heads look."""
        return [*self._by_epoch(), self._by_place(), *self._swaps(), *self._attention()] if self.step_count else []

    @property
    def _chance(self) -> dict[str, float]:
        return {"chance": 1 / self.options.symbols}

    def _by_epoch(self) -> list[Panel]:
        curves = {ATTENTIONS[name]: (list(range(1, len(each) + 1)), each) for name, each in self.accuracies.items() if each}
        told = "From the same weights, on the same sequences, at the same rate."
        drawing = functools.partial(plot.curves, curves, x_label="epoch", y_label="validation accuracy", levels=self._chance)
        return [Panel("Learning to copy", drawing, told)] if curves else []

    def _by_place(self) -> Panel:
        found = {name: self.right(model, "test").mean(dim=0) for name, model in self.models.items()}
        table = "; ".join(
            f"{ATTENTIONS[name]} {value.mean():.4f}, {1000 * self.seconds[name] / self.step_count:.1f} ms an update"
            for name, value in found.items()
        )
        curves = {ATTENTIONS[name]: (list(range(1, self.options.length + 1)), value.tolist()) for name, value in found.items()}
        return Panel(
            "Accuracy by place",
            lambda: plot.curves(curves, x_label="place in the copy", y_label="test accuracy", levels=self._chance),
            f"How many of {HELD_OUT} new sequences have the right symbol at each place. On all places together: {table}.",
        )

    def _swaps(self) -> list[Panel]:
        if not self.swaps:
            return []
        numbers = sorted(set(self.swaps))
        accuracies = {"exact attention's weights under Performer's": (numbers, [self.swapped(number) for number in numbers])}
        levels = {
            f"trained with {self.options.features} features": self.right(self.models["performer"], "test").mean().item()
        } | self._chance
        told = (
            "Performer's attention estimates that of softmax, so weights may be taken over; but who copies looks sharply, with long "
            "queries and keys, where estimates vary most. Learning with the features finds weights that bear them."
        )
        drawing = functools.partial(plot.curves, accuracies, x_label="features", y_label="test accuracy", log_x=True, levels=levels)
        return [Panel("Weights taken over", drawing, told)]

    @torch.no_grad()
    def _attention(self) -> list[Panel]:
        """Where the heads of the first block look while they copy, if the sequence is short enough to be drawn."""
        if self.options.length > LONGEST_SHOWN:
            return []
        maps = {}
        for name, model in self.models.items():
            net: Any = model.eval()
            block = net.blocks[0]
            seen = block.norms[0](net.positions(net.codes(self.parts["test"].symbols[:1])))
            maps[ATTENTIONS[name]] = block.attention.attend_with_weights(seen, causal=True).weights[0, :, -self.options.length :].cpu()
        told = (
            "How the heads of the first block share out their weight in one test sequence: a row for each place of the copy, a column for "
            "each symbol before it. Whoever copies looks a fixed way back, along a falling line."
        )
        return [Panel("Where they look", lambda: plot.map_rows(maps), told)]
