"""What the recipes of copying share: readers alike but in how they attend, which learn the same task side by side. No torch at its top."""

import math
import time
from dataclasses import dataclass

from quoin.options import option
from quoin.recipes.running.options import RunOptions

__all__ = ["ATTENTIONS", "CopyOptions", "copying", "reader"]

ATTENTIONS = {"exact": "exact", "linear": "linear, elu + 1", "performer": "Performer"}
HELD_OUT = 512  # sequences to validate with, and as many to test


@dataclass(frozen=True)
class CopyOptions(RunOptions):
    """What the recipes of copying share."""

    length: int = option(16, "symbols to be copied", at_least=1, at_most=100_000)
    symbols: int = option(16, "different symbols", at_least=2, at_most=1_000_000)
    width: int = option(64, "numbers that stand for a symbol on its way", at_least=2, at_most=100_000)
    heads: int = option(2, "attention heads of a block; they divide the width", at_least=1, at_most=10_000)
    depth: int = option(1, "blocks of attention and perceptron", at_least=1, at_most=1000)
    features: int = option(128, "random features of Performer's attention, in orthogonal directions", at_least=1, at_most=1_000_000)
    epochs: int = option(12, "times that `rows` sequences are read", at_least=1, at_most=10**9)
    rows: int = option(3200, "sequences an epoch, all new", at_least=1, at_most=10**9)
    batch_size: int = option(64, "sequences per update", at_least=1, at_most=10**9)
    lr: float = option(0.003, "the largest learning rate of Adam", above=0.0, at_most=1e38)


def reader(attention, options, features=None):
    """The reader that attends in this way; its weights, but for Performer's directions, are the same in all ways."""
    from quoin.data import keyed_generator
    from quoin.layers import EluPlusOne, ExactAttention, FeatureMapAttention, PerformerFeatures, orthogonal_directions
    from quoin.models import CopyReader

    directions = keyed_generator("directions", options.seed)

    def core():
        if attention == "exact":
            return ExactAttention()
        if attention == "linear":
            return FeatureMapAttention(EluPlusOne())
        width = max(1, options.width // options.heads)  # a number of heads that does not divide is told by the reader
        return FeatureMapAttention(PerformerFeatures(width, features or options.features, generator=directions, law=orthogonal_directions))

    return CopyReader(
        options.symbols + 1,
        options.width,
        heads=options.heads,
        depth=options.depth,
        make_core=core,
        generator=keyed_generator("weights", options.seed),
    )


def copying(kept, options, place, swaps=()):
    """The task: a reader for each way to attend, on the same new sequences; `kept` names the one that the run is about.

    `swaps` are numbers of features with which Performer's attention is tried on the weights that exact attention learned.
    """
    import torch
    from torch.nn import functional

    from quoin import draw
    from quoin.data import Batches, copy_sequences, keyed_generator
    from quoin.draw import Panel
    from quoin.optim import cosine, with_warm_up
    from quoin.train import Diverged, load_strictly

    rate = with_warm_up(cosine, 0.1)

    def drawn(count, *key):
        made = copy_sequences(count, options.length, options.symbols, generator=keyed_generator("copy", options.seed, *key))
        return made._replace(symbols=made.symbols.to(place.device), answers=made.answers.to(place.device))

    parts = {part: drawn(HELD_OUT, part) for part in ("validation", "test")}

    class Learner:
        """One reader and what was seen of it."""

        def __init__(self, attention):
            self.model = reader(attention, options).to(place.device)
            self.adam = torch.optim.Adam(self.model.parameters(), options.lr)
            self.accuracies = []  # on the validation part, after each epoch
            self.seconds = 0.0  # spent in updates. No metric: no two runs agree on it

        def step(self, batch, progress):
            began = time.perf_counter()
            self.model.train()
            self.adam.param_groups[0]["lr"] = options.lr * rate(progress)
            self.adam.zero_grad()
            with place.autocast():
                scores = self.model(batch.symbols)[:, -options.length :]
                loss = functional.cross_entropy(scores.flatten(0, 1).float(), batch.answers.flatten())
            if not math.isfinite(loss.item()):
                raise Diverged("the loss is not finite; try a smaller --lr")
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.adam.step()
            self.seconds += time.perf_counter() - began
            return loss.detach()

        def state(self):
            seen = {"accuracies": self.accuracies, "seconds": self.seconds}
            return {"weights": self.model.state_dict(), "adam": self.adam.state_dict(), "seen": seen}

        def load(self, state):
            load_strictly(self.model, state["weights"])
            self.adam.load_state_dict(state["adam"])
            self.accuracies, self.seconds = state["seen"]["accuracies"], state["seen"]["seconds"]

    class Copying:
        """Every update shows one batch of new sequences to all readers."""

        def __init__(self):
            self.facts = None
            self.batches = Batches(options.rows, options.batch_size, seed=options.seed, shuffle=False)
            self.learners = {attention: Learner(attention) for attention in ATTENTIONS}
            self.steps = 0

        def step(self, rows):
            batch = drawn(len(rows), self.steps)
            progress = self.steps / max(1, options.epochs * self.batches.num_batches)
            losses = {name: each.step(batch, progress) * len(rows) for name, each in self.learners.items()}
            self.steps += 1
            if self.batches.position == self.batches.num_batches:
                for name, each in self.learners.items():
                    each.accuracies.append(right(self.learners[name].model, "validation").mean().item())
            return {"loss": losses[kept]} | {f"loss_{name}": loss for name, loss in losses.items()}

        def evaluate(self, part):
            if part not in parts:
                return {}  # no sequence of training is seen twice
            found = {name: right(each.model, part) for name, each in self.learners.items()}
            told = {f"accuracy_{name}": value.mean().item() for name, value in found.items()}
            whole = {f"whole_{name}": value.all(dim=1).double().mean().item() for name, value in found.items()}
            swapped = {f"swapped_{number}": self.swapped(number) for number in swaps} if part == "test" else {}
            return {"accuracy": told[f"accuracy_{kept}"]} | told | whole | swapped

        def swapped(self, number):
            """The accuracy of the exact reader's weights under Performer's attention with so many features, without learning again."""
            other = reader("performer", options, number).to(place.device)
            other.load_state_dict(dict(self.learners["exact"].model.named_parameters()), strict=False)  # its directions stay
            return right(other, "test").mean().item()

        def state(self):
            learners = {name: each.state() for name, each in self.learners.items()}
            model = {"weights": self.learners[kept].model.state_dict()}
            return {"model": model, "learners": learners, "batches": self.batches.state(), "steps": self.steps}

        def load(self, state):
            for name, each in self.learners.items():
                each.load(state["learners"][name])
            self.batches.load(state["batches"])
            self.steps = state["steps"]

        def panels(self):
            if not self.steps:
                return []
            found = {name: right(each.model, "test").mean(dim=0) for name, each in self.learners.items()}
            table = "; ".join(
                f"{ATTENTIONS[name]} {found[name].mean():.4f}, {1000 * each.seconds / self.steps:.1f} ms an update"
                for name, each in self.learners.items()
            )
            places = list(range(1, options.length + 1))
            by_place = {ATTENTIONS[name]: (places, value.tolist()) for name, value in found.items()}
            chance = {"chance": 1 / options.symbols}
            panels = [
                Panel(
                    "Accuracy by place",
                    lambda: draw.curves(by_place, x_label="place in the copy", y_label="test accuracy", levels=chance),
                    f"How many of {HELD_OUT} new sequences have the right symbol at each place. On all places together: {table}.",
                )
            ]
            if epochs := len(self.learners[kept].accuracies):
                curves = {ATTENTIONS[name]: (list(range(1, epochs + 1)), each.accuracies) for name, each in self.learners.items()}
                panels.insert(
                    0,
                    Panel(
                        "Learning to copy",
                        lambda: draw.curves(curves, x_label="epoch", y_label="validation accuracy", levels=chance),
                        "From the same weights, on the same sequences, at the same rate.",
                    ),
                )
            return [*panels, *self.exchange(), *looks(self.learners)]

        def exchange(self):
            if not swaps:
                return []
            names = sorted(set(swaps))
            accuracies = {"exact attention's weights under Performer's": (names, [self.swapped(number) for number in names])}
            trained = right(self.learners["performer"].model, "test").mean().item()
            levels = {f"trained with {options.features} features": trained, "chance": 1 / options.symbols}
            told = (
                "Performer's attention estimates that of softmax, so weights may be taken over; but who copies looks sharply, with long "
                "queries and keys, where estimates vary most. Learning with the features finds weights that bear them."
            )
            return [
                Panel(
                    "Weights taken over",
                    lambda: draw.curves(accuracies, x_label="features", y_label="test accuracy", log_x=True, levels=levels),
                    told,
                )
            ]

    @torch.no_grad()
    def right(model, part):
        """Where the likeliest next symbol is the right one, (sequences, length)."""
        model.eval()
        pieces = zip(parts[part].symbols.split(128), parts[part].answers.split(128))
        return torch.cat([model(symbols)[:, -options.length :].argmax(-1) == answers for symbols, answers in pieces]).double().cpu()

    @torch.no_grad()
    def looks(learners):
        """Where the heads of the first block look while they copy, if the sequence is short enough to be drawn."""
        if options.length > 64:
            return []
        maps = {}
        for name, each in learners.items():
            net = each.model.eval()
            block = net.blocks[0]
            seen = block.norms[0](net.positions(net.codes(parts["test"].symbols[:1])))
            maps[ATTENTIONS[name]] = block.attention.attend_with_weights(seen, causal=True).weights[0, :, -options.length :].cpu()
        told = (
            "How the heads of the first block share out their weight in one test sequence: a row for each place of the copy, a column for "
            "each symbol before it. Whoever copies looks a fixed way back, along a falling line."
        )
        return [Panel("Where they look", lambda: draw.map_rows(maps), told)]

    return Copying()
