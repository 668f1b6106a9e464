"""Learn the class of a text: the task of sequence classification, with rivals that learn beside the model for the report."""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import (
    Batches,
    LabelledBatch,
    LabelledCorpus,
    LabelledFacts,
    LabelledTexts,
    directions,
    keyed_generator,
    label_corpus,
    labelled_facts,
    load_pairs,
)
from quoin.data.padding import batches_by_length
from quoin.errors import Mistake, shown
from quoin.layers import Rotary, transformer_block
from quoin.losses import cross_entropy
from quoin.models import BagReader, RecurrentReader, SequenceClassifier, TransformerReader
from quoin.plot import Panel
from quoin.tasks.lr_schedule import schedule
from quoin.train import GradientUpdater, Metrics, Place, check_finite, load_strictly

__all__ = ["READERS", "LabellingTask", "Posterior", "labelled_corpus", "sequence_classifier"]

READERS = ("recurrent", "transformer", "bag")
MOST_LENGTHS = 8  # groups of lengths in the report
MOST_SHOWN = 6  # mistakes in the report
LONGEST_SHOWN = 60  # characters of a text there

Posterior = Callable[[Sequence[str]], Tensor]  # texts -> (n, q), where the law of the texts is known


def labelled_corpus(options: Any, place: Place) -> tuple[LabelledCorpus, Posterior | None]:
    """The texts that `options` name, in tokens, and the best possible classifier of those that are generated."""
    posterior = None
    if options.data == "directions":
        source = directions(options.symbols, sharpness=options.sharpness, generator=keyed_generator("source", options.seed))
        drawn = keyed_generator("texts", options.seed)
        pairs = source.draw(options.texts, shortest=options.longest // 4, longest=options.longest, generator=drawn)
        posterior = source.posterior
    elif options.data.startswith("tsv:"):
        pairs = load_pairs(options.data)
    else:
        raise Mistake(f"expected texts with their classes, got the data source {shown(options.data)}: give directions or tsv:PATH")
    corpus = label_corpus(pairs, tokens=options.vocabulary, size=options.vocabulary_size, seed=options.seed, device=place.device)
    return corpus, posterior


def sequence_classifier(name: str, options: Any, facts: LabelledFacts) -> SequenceClassifier:
    """The classifier with the reader of this name."""
    size, width, dropout = facts.vocabulary.size, options.width, options.dropout
    generator = keyed_generator("weights", name, options.seed)
    if name == "bag":
        reader = BagReader(size, width, generator=generator)
    elif name == "recurrent":
        reader = RecurrentReader(nn.GRU, size, width, options.hidden, layers=options.layers, dropout=dropout, generator=generator)
    else:
        if width % (2 * options.heads):
            raise Mistake(f"--width expects a multiple of twice the heads, {2 * options.heads}, got {width}: choose another")
        turn = Rotary(width // options.heads)  # it tells before from behind, as codes that are added do only after long learning
        blocks = [transformer_block(width, options.heads, turn=turn, dropout=dropout, generator=generator) for _ in range(options.layers)]
        reader = TransformerReader(size, blocks, dropout=dropout, generator=generator)
    return SequenceClassifier(reader, facts.num_classes, generator=generator)


class LabellingTask:
    """Models of (tokens, lengths) to logits learn from the same batches; `kept` names the one that the run is about.

    With a `posterior` the best possible classifier is known, and `shortfall` is by how much of the accuracy the model misses it.
    """

    kind = "sequence-classification"

    def __init__(
        self, models: Mapping[str, nn.Module], kept: str, corpus: LabelledCorpus, options, place: Place, posterior: Posterior | None = None
    ) -> None:
        self.corpus, self.kept, self.options, self.place, self.posterior = corpus, kept, options, place, posterior
        self.facts = labelled_facts(corpus)
        self.batches = Batches(
            len(corpus.train), options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device
        )
        steps = options.epochs * self.batches.num_batches
        self.updaters = {
            name: GradientUpdater(
                model.to(place.device),
                torch.optim.AdamW(model.parameters(), options.lr, weight_decay=options.weight_decay),
                total_steps=steps,
                place=place,
                schedule=schedule(options),
                max_grad_norm=options.clip,
                name=f"the loss of {name}",
            )
            for name, model in models.items()
        }

    @property
    def model(self) -> nn.Module:
        return self.updaters[self.kept].model

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update of every model on the training texts of these numbers; the losses before it, summed."""
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        pieces = [(self.corpus.train.read(piece),) for piece in rows.split(self.options.micro_batch or self.options.batch_size)]
        losses = {}
        for name, updater in self.updaters.items():
            updater.model.train()
            losses[name] = updater.update(pieces, functools.partial(self._losses, updater.model), weight=1 / batch_rows)
        return {"loss": losses[self.kept]}

    def _losses(self, model: nn.Module, batch: LabelledBatch) -> Tensor:
        return cross_entropy(model(batch.tokens, batch.lengths), batch.labels)

    def evaluate(self, part: str) -> Metrics:
        """Loss and accuracy of the model, the accuracies of its rivals, and of the best classifier where it is known."""
        texts: LabelledTexts = getattr(self.corpus, part)
        logits = {name: self.logits(name, texts) for name in self.updaters}
        labels = texts.labels.cpu()
        right = {name: float((found.argmax(-1) == labels).double().mean()) for name, found in logits.items()}
        loss = float(cross_entropy(logits[self.kept], labels).double().mean())
        check_finite({f"{part}_loss": loss}, f"after step {self.updaters[self.kept].step_count}")
        metrics = {"loss": loss, "accuracy": right[self.kept]}
        metrics |= {f"accuracy_{name}": value for name, value in right.items() if name != self.kept}
        if self.posterior is not None:
            best = float((self.posterior(texts.pairs.sources).argmax(-1) == labels).double().mean())
            metrics |= {"best_accuracy": best, "shortfall": best - right[self.kept]}
        return metrics

    @torch.no_grad()
    def logits(self, name: str, texts: LabelledTexts) -> Tensor:  # -> (n, q), on the CPU
        """What this model makes of all the texts, in their order; those of like length are read together, so that little is padded."""
        model = self.updaters[name].model.eval()
        batches = batches_by_length(texts.lengths)
        found = [model(batch.tokens, batch.lengths) for batch in map(texts.read, batches)]
        return torch.cat(found)[torch.cat(batches).argsort()].cpu()

    def state(self) -> dict[str, Any]:
        for updater in self.updaters.values():
            updater.check_parameters()
        weights = {name: each.model.state_dict() for name, each in self.updaters.items()}
        model = {"weights": weights.pop(self.kept)}
        updaters = {name: each.state_dict() for name, each in self.updaters.items()}
        return {"model": model, "rivals": weights, "updaters": updaters, "batches": self.batches.state()}

    def load(self, state: dict[str, Any]) -> None:
        for name, updater in self.updaters.items():
            load_strictly(updater.model, state["model"]["weights"] if name == self.kept else state["rivals"][name])
            updater.load_state_dict(state["updaters"][name])
        self.batches.load(state["batches"])

    def panels(self) -> list[Panel]:
        """The accuracy of all by the length of a text, who confuses what, and the surest mistakes."""
        test = self.corpus.test
        labels = test.labels.cpu()
        logits = {name: self.logits(name, test) for name in self.updaters}
        return [self._by_length(logits, labels), *self._mistakes(logits[self.kept], labels)]

    def _by_length(self, logits: dict[str, Tensor], labels: Tensor) -> Panel:
        right = {name: found.argmax(-1) == labels for name, found in logits.items()}
        if self.posterior is not None:
            right["the best possible"] = self.posterior(self.corpus.test.pairs.sources).argmax(-1) == labels
        lengths = self.corpus.test.lengths.cpu()
        groups = lengths.argsort(stable=True).tensor_split(min(MOST_LENGTHS, len(lengths)))
        places = [float(lengths[group].double().mean()) for group in groups]
        lines = {name: (places, [float(found[group].double().mean()) for group in groups]) for name, found in right.items()}
        chance = float(labels.bincount().max()) / len(labels)
        told = "; ".join(f"{name} {found.double().mean():.4f}" for name, found in right.items())
        caption = f"All learn from the same batches; a point for each group of test texts. Of all texts: {told}."
        return Panel(
            "Accuracy by length",
            lambda: plot.curves(lines, x_label="tokens of a text", y_label="test accuracy", levels={"the commonest class": chance}),
            caption,
        )

    def _mistakes(self, logits: Tensor, labels: Tensor) -> list[Panel]:
        names = [name if len(name) <= 20 else f"{name[:19]}…" for name in self.corpus.class_names]
        chances, predicted = logits.softmax(-1), logits.argmax(-1)
        wrong = (predicted != labels).nonzero().flatten()
        worst = wrong[chances[wrong, predicted[wrong]].argsort(descending=True, stable=True)][:MOST_SHOWN].tolist()
        texts = self.corpus.test.pairs.sources
        shown = (
            f"{texts[row][:LONGEST_SHOWN]} → {names[int(predicted[row])]} ({chances[row].max():.0%}), is {names[int(labels[row])]}"
            for row in worst
        )
        told = f"Rows are the true class, columns the predicted one; {len(wrong)} of {len(labels)} test texts are wrong."
        told += f" The surest mistakes: {'; '.join(shown)}." if worst else ""
        if len(names) > 40:  # beyond this a confusion matrix is unreadable
            return []
        counts = torch.bincount(labels * len(names) + predicted, minlength=len(names) ** 2).reshape(len(names), -1)
        return [
            Panel(
                "Confusion matrix",
                lambda: plot.heat_map(
                    counts, row_labels=names, column_labels=names, x_label="predicted", y_label="true", show_values=len(names) <= 20
                ),
                told,
            )
        ]
