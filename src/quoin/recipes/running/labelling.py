"""Learn the class of a text: the task of sequence classification, with rivals that learn beside the model for the report."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from quoin import draw
from quoin.data import Batches, LabelledCorpus, LabelledTexts, labelled_facts
from quoin.draw import Panel
from quoin.objectives import cross_entropy
from quoin.recipes.running.parts import schedule
from quoin.train import Descent, Diverged, Metrics, Place, load_strictly

__all__ = ["LabellingTask", "Posterior"]

AT_ONCE = 512  # texts that are judged together
MOST_LENGTHS = 8  # groups of lengths in the report
MOST_SHOWN = 6  # mistakes in the report
LONGEST_SHOWN = 60  # characters of a text there

Posterior = Callable[[Sequence[str]], Tensor]  # texts -> (n, q), where the law of the texts is known


class Learner:
    """One model and its descent."""

    def __init__(self, model: nn.Module, options, total_steps: int, place: Place) -> None:
        self.model = model
        adam = torch.optim.AdamW(model.parameters(), options.lr, weight_decay=options.weight_decay)
        self.descent = Descent(adam, total_steps=total_steps, place=place, schedule=schedule(options), clip=options.clip)

    def state(self) -> dict[str, Any]:
        return {"weights": self.model.state_dict(), "descent": self.descent.state()}

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["weights"])
        self.descent.load(state["descent"])


class LabellingTask:
    """Models of (tokens, lengths) to logits learn from the same batches; `kept` names the one that the run is about.

    With a `posterior` the best possible classifier is known, and `shortfall` is by how much of the accuracy the model misses it.
    """

    def __init__(
        self, models: Mapping[str, nn.Module], kept: str, corpus: LabelledCorpus, options, place: Place, posterior: Posterior | None = None
    ) -> None:
        self.corpus, self.kept, self.options, self.place, self.posterior = corpus, kept, options, place, posterior
        self.facts = labelled_facts(corpus)
        self.batches = Batches(
            len(corpus.train), options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device
        )
        steps = options.epochs * self.batches.num_batches
        self.learners = {name: Learner(model.to(place.device), options, steps, place) for name, model in models.items()}

    @property
    def model(self) -> nn.Module:
        return self.learners[self.kept].model

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update of every model on the training texts of these numbers; the losses before it, summed."""
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        pieces = [self.corpus.train.read(piece) for piece in rows.split(self.options.micro_batch or self.options.batch_size)]
        losses = {}
        for name, learner in self.learners.items():
            learner.model.train()
            learner.descent.begin()
            total = torch.zeros((), device=self.place.device)
            for batch in pieces:
                with self.place.autocast():
                    found = cross_entropy(learner.model(batch.tokens, batch.lengths), batch.labels)
                total = total + found.detach().sum()
                if total.device.type == "cpu" and not math.isfinite(total.item()):
                    raise Diverged(f"the loss of {name} is not finite at step {learner.descent.step_count + 1}; try a smaller --lr")
                learner.descent.add(found, 1 / batch_rows)
            learner.descent.finish()
            losses[name] = total
        return {"loss": losses[self.kept]}

    def evaluate(self, part: str) -> Metrics:
        """Loss and accuracy of the model, the accuracies of its rivals, and of the best classifier where it is known."""
        texts: LabelledTexts = getattr(self.corpus, part)
        logits = {name: self.logits(name, texts) for name in self.learners}
        labels = texts.labels.cpu()
        right = {name: float((found.argmax(-1) == labels).double().mean()) for name, found in logits.items()}
        loss = float(cross_entropy(logits[self.kept], labels).double().mean())
        if not math.isfinite(loss):
            raise Diverged(f"the {part} loss is not finite; try a smaller --lr, or --clip 1")
        metrics = {"loss": loss, "accuracy": right[self.kept]}
        metrics |= {f"accuracy_{name}": value for name, value in right.items() if name != self.kept}
        if self.posterior is not None:
            best = float((self.posterior(texts.pairs.sources).argmax(-1) == labels).double().mean())
            metrics |= {"best_accuracy": best, "shortfall": best - right[self.kept]}
        return metrics

    @torch.no_grad()
    def logits(self, name: str, texts: LabelledTexts) -> Tensor:  # -> (n, q), on the CPU
        """What this model makes of all the texts, in their order; those of like length are read together, so that little is padded."""
        model = self.learners[name].model.eval()
        order = texts.lengths.argsort(stable=True)
        found = []
        for rows in order.split(AT_ONCE):
            batch = texts.read(rows)
            found.append(model(batch.tokens, batch.lengths))
        return torch.cat(found)[order.argsort()].cpu()

    def state(self) -> dict[str, Any]:
        for name, learner in self.learners.items():
            for path, parameter in learner.model.named_parameters():
                if not parameter.isfinite().all():
                    raise Diverged(f"parameter {path} of {name} is not finite; try a smaller --lr, or --clip 1")
        learners = {name: each.state() for name, each in self.learners.items()}
        return {"model": {"weights": learners[self.kept].pop("weights")}, "learners": learners, "batches": self.batches.state()}

    def load(self, state: dict[str, Any]) -> None:
        for name, each in self.learners.items():
            each.load(state["learners"][name] | (state["model"] if name == self.kept else {}))
        self.batches.load(state["batches"])

    def panels(self) -> list[Panel]:
        """The accuracy of all by the length of a text, who confuses what, and the surest mistakes."""
        test = self.corpus.test
        labels = test.labels.cpu()
        logits = {name: self.logits(name, test) for name in self.learners}
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
            lambda: draw.curves(lines, x_label="tokens of a text", y_label="test accuracy", levels={"the commonest class": chance}),
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
                lambda: draw.heat_map(
                    counts, row_labels=names, column_labels=names, x_label="predicted", y_label="true", show_values=len(names) <= 20
                ),
                told,
            )
        ]
