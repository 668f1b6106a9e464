"""Learn to translate: the task that recipes of encoders and decoders share, and what is told of them."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from quoin import draw
from quoin.data import Batches, PairBatch, PairCorpus, PairFacts, TokenPairs, load_pair_corpus, pair_facts
from quoin.draw import Panel
from quoin.errors import Mistake
from quoin.objectives import bleu, exact_match, sequence_cross_entropy
from quoin.recipes.running.options import TranslationOptions
from quoin.recipes.running.parts import schedule
from quoin.recipes.running.translation_run import AT_ONCE, longest, say
from quoin.train import Descent, Diverged, Metrics, Place, load_strictly

__all__ = ["TranslationTask", "pairs", "translation_task"]

MOST_SHOWN = 6  # examples of each kind in the report
MOST_LENGTHS = 12  # bars of the report


def pairs(options: TranslationOptions, place: Place) -> PairCorpus:
    """The pairs that `options` name, in tokens."""
    return load_pair_corpus(
        options.data,
        source_tokens=options.source_vocabulary,
        target_tokens=options.target_vocabulary,
        size=options.vocabulary_size,
        num_pairs=options.pairs,
        seed=options.seed,
        device=place.device,
    )


def translation_task(
    model: Callable[[Any, PairFacts], nn.Module],
    options: TranslationOptions,
    place: Place,
    *,
    look: Callable[["TranslationTask", Sequence[int]], list[Panel]] | None = None,
) -> "TranslationTask":
    """The recipe's `model` on the pairs that `options` name; `look` draws where it looks in these pairs of the test part."""
    corpus = pairs(options, place)
    net = model(options, pair_facts(corpus)).to(place.device)
    optimiser = torch.optim.AdamW(net.parameters(), options.lr, betas=(0.9, 0.99), weight_decay=options.weight_decay)
    return TranslationTask(net, optimiser, corpus, options, place, look)


class TranslationTask:
    """A model of (source, target so far) to scores of the next token learns from pairs, reading the right target, not its own.

    The loss is -ln P(y | x) of a pair over the mean length of a target, so that it is told in nats a token.
    """

    def __init__(
        self,
        model: nn.Module,
        optimiser: torch.optim.Optimizer,
        corpus: PairCorpus,
        options: TranslationOptions,
        place: Place,
        look: Callable[["TranslationTask", Sequence[int]], list[Panel]] | None = None,
    ) -> None:
        self.model, self.corpus, self.options, self.place, self.look = model, corpus, options, place, look
        self.facts = pair_facts(corpus)
        self.batches = Batches(
            len(corpus.train), options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device
        )
        self.descent = Descent(
            optimiser, total_steps=options.epochs * self.batches.num_batches, place=place, schedule=schedule(options), clip=options.clip
        )
        self.mean_length = float(corpus.train.lengths()[1].double().mean())
        self._losses = place.compiled(self.losses)

    def losses(self, batch: PairBatch) -> Tensor:  # -> (b,)
        """-ln P(y | x) of each pair."""
        with self.place.autocast():
            logits = self.model(
                batch.source, batch.inputs, source_lengths=batch.source_lengths, target_lengths=batch.target_lengths
            )  # fmt: skip
        return sequence_cross_entropy(logits.float(), batch.targets, batch.target_lengths).sum(dim=-1)

    def step(self, rows: Tensor) -> dict[str, Tensor]:
        """One update on the training pairs of these numbers; the loss of each, summed."""
        self.model.train()
        batch_rows = len(rows) if self.place.world == 1 else self.batches.rows_handed_out
        self.descent.begin()
        total = torch.zeros((), device=self.place.device)
        for piece in rows.split(self.options.micro_batch or self.options.batch_size):
            losses = self._losses(self.corpus.train.read(piece))
            total = total + losses.detach().sum()
            if total.device.type == "cpu" and not math.isfinite(total.item()):
                raise Diverged(f"the loss is not finite at step {self.descent.step_count + 1}; try a smaller --lr, or --clip 1")
            self.descent.add(losses, 1 / (batch_rows * self.mean_length))
        self.descent.finish()
        return {"loss": total / self.mean_length}

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        """Nats of a token, and the share of targets said right as a whole; of the training part, of as many pairs as the test part has."""
        if part not in ("train", "validation", "test"):
            return {}
        found: TokenPairs = getattr(self.corpus, part)
        count = min(len(found), len(self.corpus.test)) if part == "train" else len(found)
        self.model.eval()
        nats, tokens = 0.0, 0
        for rows in torch.arange(count).split(AT_ONCE):
            batch = found.read(rows)
            nats += float(self.losses(batch).double().sum())
            tokens += int(batch.target_lengths.sum())
        if not math.isfinite(nats):
            raise Diverged(f"the loss is not finite after step {self.descent.step_count}; try a smaller --lr, or --clip 1")
        said, right = self.translations(found, range(count)), found.pairs.targets[:count]
        metrics = {"loss": nats / tokens, "exact": exact_match(said, right)}
        if part == "test":
            kind = "characters" if self.options.target_vocabulary == "characters" else "words"
            with suppress(Mistake):  # sacrebleu is an extra: without it the rest is still told
                metrics["bleu"] = bleu(said, right, tokens=kind)
        return metrics

    def translations(self, part: TokenPairs, rows: Sequence[int]) -> list[str]:
        """What the model says to the sources of these pairs."""
        said = []
        for some in torch.tensor(rows).split(AT_ONCE):
            batch = part.read(some)
            found = say(self.model, batch.source, batch.source_lengths, beam=self.options.beam, max_tokens=longest(self.facts))
            said += [self.corpus.target_vocabulary.decode(tokens) for tokens in found.tokens]
        return said

    def state(self) -> dict[str, Any]:
        for name, parameter in self.model.named_parameters():
            if not parameter.isfinite().all():
                raise Diverged(f"parameter {name} is not finite after step {self.descent.step_count}; try a smaller --lr, or --clip 1")
        return {"model": {"weights": self.model.state_dict()}, "descent": self.descent.state(), "batches": self.batches.state()}

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["model"]["weights"])
        self.descent.load(state["descent"])
        self.batches.load(state["batches"])

    def panels(self) -> list[Panel]:
        """How many are right by the length of their source, some that are not, and where the model looks."""
        test = self.corpus.test
        said = self.translations(test, range(len(test)))
        right = [ours == theirs for ours, theirs in zip(said, test.pairs.targets)]
        wrong = [row for row, well in enumerate(right) if not well]
        fine = [row for row, well in enumerate(right) if well]
        shown = [*wrong[: MOST_SHOWN // 2], *fine[: MOST_SHOWN // 2]]
        return [self._by_length(right, said, wrong, fine), *(self.look(self, shown) if self.look else [])]

    def _by_length(self, right: list[bool], said: list[str], wrong: list[int], fine: list[int]) -> Panel:
        pairs = self.corpus.test.pairs
        lengths = torch.tensor([len(source) for source in pairs.sources])
        edges = sorted({round(float(q)) for q in torch.quantile(lengths.double(), torch.linspace(0, 1, MOST_LENGTHS + 1).double())})
        bars = {}
        for low, high in zip(edges, [*edges[1:], edges[-1] + 1]):
            inside = [right[row] for row in ((lengths >= low) & (lengths < high)).nonzero().flatten().tolist()]
            if inside:
                name = f"{low}" if high == low + 1 else f"{low} to {high - 1}"
                bars[f"{name} ({len(inside)})"] = sum(inside) / len(inside)
        told = [f"{len(fine)} of {len(right)} test targets are right as a whole."]
        if fine:
            told.append("Right: " + "; ".join(f"{pairs.sources[row]} → {said[row]}" for row in fine[:MOST_SHOWN]) + ".")
        if wrong:
            examples = (f"{pairs.sources[row]} → {said[row]} for {pairs.targets[row]}" for row in wrong[:MOST_SHOWN])
            told.append("Wrong: " + "; ".join(examples) + ".")
        return Panel(
            "Right and wrong", lambda: draw.bars(bars, x_label="share right, by characters of the source (how many)"), " ".join(told)
        )
