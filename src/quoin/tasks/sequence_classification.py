"""Learn the class of a text: the task of sequence classification, with rivals that learn beside the model for the
report."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import (
    BatchSampler,
    LabeledBatch,
    LabeledCorpus,
    LabeledTextInfo,
    LabeledTexts,
    keyed_generator,
    labeled_text_info,
    load_labeled_corpus,
    load_labeled_pairs,
    make_walk_directions,
)
from quoin.data.labeled_files import LABEL_COLUMN, TEXT_COLUMN
from quoin.data.padding import batches_by_length
from quoin.display import format_number, short_names
from quoin.errors import UserError
from quoin.layers import RotaryEmbedding, build_position_tables, transformer_block
from quoin.losses import cross_entropy
from quoin.metrics import confusion_matrix
from quoin.models import BagOfWordsEncoder, RecurrentTextEncoder, SequenceClassifier, TransformerTextEncoder
from quoin.plot import Panel
from quoin.tasks.classifier_loss import training_loss
from quoin.tasks.classifier_panels import quality_panels
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.supervised import auc_metrics
from quoin.train import DeviceContext, GradientUpdater, Metrics, check_finite, load_state_dict_strict
from quoin.train.global_batch import GlobalBatch, cut_batch
from quoin.train.processes import fraction_of, gather_rows

__all__ = ["ENCODERS", "Posterior", "SequenceClassificationTask", "load_labeled_texts", "sequence_classifier"]

ENCODERS = ("recurrent", "transformer", "bag-of-words")
MOST_LENGTHS = 8  # groups of lengths in the report
MOST_SHOWN = 6  # errors in the report
LONGEST_SHOWN = 60  # characters of a text there

Posterior = Callable[[Sequence[str]], Tensor]  # texts -> (n, q), where the distribution of the texts is known


def load_labeled_texts(options: Any, device_context: DeviceContext) -> tuple[LabeledCorpus, Posterior | None]:
    """The texts that `options` name, in tokens, and the best possible classifier of those that are generated."""
    posterior = None
    if options.data == "directions" and options.text_column is options.target is None:
        source = make_walk_directions(
            options.num_symbols, sharpness=options.sharpness, generator=keyed_generator("source", options.seed)
        )
        generator = keyed_generator("texts", options.seed)
        pairs = source.sample(
            options.num_texts, shortest=options.max_length // 4, longest=options.max_length, generator=generator
        )
        posterior = source.posterior
    else:
        pairs = load_labeled_pairs(
            options.data,
            text_column=TEXT_COLUMN._replace(name=options.text_column),
            target=LABEL_COLUMN._replace(name=options.target),
        )
    corpus = load_labeled_corpus(
        pairs,
        tokenizer=options.tokenizer,
        vocab_size=options.vocab_size,
        seed=options.seed,
        device=device_context.device,
    )
    return corpus, posterior


def sequence_classifier(name: str, options: Any, data_info: LabeledTextInfo) -> SequenceClassifier:
    """The classifier with the encoder of this name."""
    vocab_size, embed_dim, dropout = data_info.tokenizer.vocab_size, options.embed_dim, options.dropout
    generator = keyed_generator("weights", name.partition("-")[0], options.seed)
    if name == "bag-of-words":
        encoder = BagOfWordsEncoder(vocab_size, embed_dim, generator=generator)
    elif name == "recurrent":
        encoder = RecurrentTextEncoder(
            nn.GRU,
            vocab_size,
            embed_dim,
            options.hidden_dim,
            num_layers=options.num_layers,
            dropout=dropout,
            generator=generator,
        )
    else:
        if embed_dim % (2 * options.num_heads):
            raise UserError(
                f"--embed-dim expects a multiple of twice the heads, {2 * options.num_heads}, got {embed_dim}: "
                "choose another"
            )
        rotary = RotaryEmbedding(
            embed_dim // options.num_heads
        )  # it distinguishes before from after, as added positional encodings do only after long training
        blocks = [
            transformer_block(embed_dim, options.num_heads, rotary=rotary, dropout=dropout, generator=generator)
            for _ in range(options.num_layers)
        ]
        encoder = TransformerTextEncoder(vocab_size, blocks, dropout=dropout, generator=generator)
    return SequenceClassifier(encoder, data_info.num_classes, generator=generator)


class SequenceClassificationTask:
    """Models of (tokens, lengths) to logits learn from the same batches; `primary` names the one that the run is about.

    With a `posterior` the best possible classifier is known, and `bayes_accuracy_gap` is by how much of the accuracy
    the model misses it.
    """

    kind = "sequence-classification"
    is_data_parallel = True  # `runs_in_processes`

    def __init__(
        self,
        models: Mapping[str, nn.Module],
        primary: str,
        corpus: LabeledCorpus,
        options: Any,
        device_context: DeviceContext,
        posterior: Posterior | None = None,
    ) -> None:
        self.corpus, self.primary, self.options, self.device_context, self.posterior = (
            corpus,
            primary,
            options,
            device_context,
            posterior,
        )
        self.data_info = labeled_text_info(corpus)
        self.train_loss_fn = training_loss(options, corpus.train.labels, corpus.class_names)
        self.batches = BatchSampler(
            len(corpus.train),
            options.batch_size,
            seed=options.seed,
            rank=device_context.rank,
            world_size=device_context.world_size,
            device=device_context.device,
        )
        steps = options.epochs * self.batches.num_batches
        self.updaters = {
            name: GradientUpdater(
                model.to(device_context.device),
                make_optimizer(model.parameters(), options),
                total_steps=steps,
                device_context=device_context,
                schedule=make_lr_schedule(options),
                max_grad_norm=options.max_grad_norm,
                name=f"the loss of {name}",
            )
            for name, model in models.items()
        }
        longest = int(corpus.train.lengths.max()) + 1
        for model in models.values():
            build_position_tables(model, longest, device_context.device)
        # Compiled for all shapes: each batch is as long as its longest text.
        self._step_losses = {
            name: device_context.compiled(functools.partial(self._losses, model), 0) for name, model in models.items()
        }

        self.global_batches = {name: GlobalBatch(model, options.seed, device_context) for name, model in models.items()}

    @property
    def model(self) -> nn.Module:
        return self.updaters[self.primary].model

    @contextmanager
    def whole_weights(self) -> Iterator[None]:
        """Inside, every process has all weights of every model, of which it may keep but a fraction."""
        with ExitStack() as stack:
            for updater in self.updaters.values():
                stack.enter_context(updater.whole_weights())
            yield

    def step(self, rows: Int[Tensor, "batch"]) -> dict[str, Float[Tensor, ""]]:
        """One step of every model on the training texts of these numbers; the losses before it, summed."""
        world_size = self.device_context.world_size
        among = rows if world_size == 1 else self.batches.batch_rows  # all pieces are padded alike
        micro_batch_size = self.options.micro_batch_size or self.options.batch_size
        cut = cut_batch(rows, micro_batch_size, self.batches, world_size)
        pieces = [(piece, (self.corpus.train.read(piece.rows, among),)) for piece in cut]
        losses = {}
        for name, updater in self.updaters.items():
            updater.model.train()
            losses[name] = self.global_batches[name].update(
                updater, pieces, self._step_losses[name], weight=1 / len(among)
            )
        return {"loss": losses[self.primary]}

    def _losses(self, model: nn.Module, batch: LabeledBatch) -> Tensor:
        return self.train_loss_fn(model(batch.tokens, batch.lengths), batch.labels)

    def evaluate(self, split: str) -> Metrics:
        """Loss and accuracy of the model, the accuracies of its rivals, and of the best classifier where it is
        known."""
        texts: LabeledTexts = getattr(self.corpus, split)
        logits = {name: self.logits(name, texts) for name in self.updaters}
        labels = texts.labels.cpu()
        correct = {name: float((found.argmax(-1) == labels).double().mean()) for name, found in logits.items()}
        loss = float(cross_entropy(logits[self.primary], labels).double().mean())
        check_finite({f"{split}_loss": loss}, f"after step {self.updaters[self.primary].step_count}")
        metrics = {"loss": loss, "accuracy": correct[self.primary]}
        if split == "test" or self.options.monitor == f"{split}_auc":
            metrics |= auc_metrics(logits[self.primary], labels)
        metrics |= {
            f"accuracy_{name.replace('-', '_')}": value for name, value in correct.items() if name != self.primary
        }
        if self.posterior is not None:
            best = float((self.posterior(texts.pairs.sources).argmax(-1) == labels).double().mean())
            metrics |= {"bayes_accuracy": best, "bayes_accuracy_gap": best - correct[self.primary]}
        return metrics

    @torch.no_grad()
    def logits(self, name: str, texts: LabeledTexts) -> Float[Tensor, "texts classes"]:
        """What this model makes of all the texts, in their order, on the CPU; those of like length are read together,
        so that little is padded. Each process reads a fraction of the texts, and all have the whole."""
        model, own = self.updaters[name].model.eval(), fraction_of(len(texts))
        if own.start == own.stop:
            return gather_rows(torch.empty(0))
        batches = [rows + own.start for rows in batches_by_length(texts.lengths[own])]
        found = [model(batch.tokens, batch.lengths) for batch in map(texts.read, batches)]
        return gather_rows(torch.cat(found)[torch.cat(batches).argsort()].cpu())

    def state_dict(self) -> dict[str, Any]:
        for updater in self.updaters.values():
            updater.check_parameters()
        weights = {name: each.model.state_dict() for name, each in self.updaters.items()}
        model = {"weights": weights.pop(self.primary)}
        updaters = {name: each.state_dict() for name, each in self.updaters.items()}
        return {"model": model, "rivals": weights, "updaters": updaters, "batches": self.batches.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, updater in self.updaters.items():
            load_state_dict_strict(
                updater.model, state["model"]["weights"] if name == self.primary else state["rivals"][name]
            )
            updater.load_state_dict(state["updaters"][name])
        self.batches.load_state_dict(state["batches"])

    def panels(self) -> list[Panel]:
        """The accuracy of all by the length of a text, the confusion matrix, and the most confident errors."""
        test = self.corpus.test
        labels = test.labels.cpu()
        logits = {name: self.logits(name, test) for name in self.updaters}
        own, names = logits[self.primary], self._names()
        quality = quality_panels(own, own.argmax(-1), labels, names)
        return [self._by_length(logits, labels), *self._mistakes(own, labels), *quality]

    def _names(self) -> list[str]:
        """The classes as a plot has space for them."""
        return short_names(self.corpus.class_names, 20)

    def _by_length(self, logits: dict[str, Tensor], labels: Tensor) -> Panel:
        correct = {name: found.argmax(-1) == labels for name, found in logits.items()}
        if self.posterior is not None:
            correct["Bayes classifier"] = self.posterior(self.corpus.test.pairs.sources).argmax(-1) == labels
        lengths = self.corpus.test.lengths.cpu()
        groups = lengths.argsort(stable=True).tensor_split(min(MOST_LENGTHS, len(lengths)))
        mean_lengths = [float(lengths[group].double().mean()) for group in groups]
        lines = {
            name: (mean_lengths, [float(found[group].double().mean()) for group in groups])
            for name, found in correct.items()
        }
        commonest = float(labels.bincount().max()) / len(labels)
        by_name = "; ".join(f"{name} {format_number(float(found.double().mean()))}" for name, found in correct.items())
        caption = f"All learn from the same batches; a point for each group of test texts. Of all texts: {by_name}."
        return Panel(
            "Accuracy by length",
            lambda: plot.curves(
                lines,
                x_label="tokens of a text",
                y_label="test accuracy",
                reference_lines={"majority class": commonest},
            ),
            caption,
        )

    def _mistakes(self, logits: Tensor, labels: Tensor) -> list[Panel]:
        names = self._names()
        probs, predicted = logits.softmax(-1), logits.argmax(-1)
        wrong = (predicted != labels).nonzero().flatten()
        worst = wrong[probs[wrong, predicted[wrong]].argsort(descending=True, stable=True)][:MOST_SHOWN].tolist()
        texts = self.corpus.test.pairs.sources
        shown = (
            f"{texts[row][:LONGEST_SHOWN]} → {names[int(predicted[row])]} ({probs[row].max():.0%}), is "
            f"{names[int(labels[row])]}"
            for row in worst
        )
        caption = (
            f"Rows are the true class, columns the predicted one; {len(wrong)} of {len(labels)} test texts are wrong."
        )
        caption += f" The most confident errors: {'; '.join(shown)}." if worst else ""
        if len(names) > 40:  # beyond this a confusion matrix is unreadable
            return []
        counts = confusion_matrix(predicted, labels, len(names))
        return [
            Panel(
                "Confusion matrix",
                lambda: plot.heatmap(
                    counts,
                    row_labels=names,
                    column_labels=names,
                    x_label="predicted",
                    y_label="true",
                    show_values=len(names) <= 20,
                ),
                caption,
            )
        ]
