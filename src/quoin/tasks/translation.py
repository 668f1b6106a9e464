"""Learn to translate: the task that recipes of encoders and decoders share, and what is told of them."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor, nn

from quoin import plot
from quoin.data import BOS, EOS, Batches, PairBatch, PairCorpus, PairFacts, TokenPairs, load_pair_corpus, pair_facts
from quoin.data.padding import SEQUENCES_PER_BATCH
from quoin.errors import Mistake
from quoin.generate import Generated, beam_search, greedy
from quoin.losses import sequence_cross_entropy
from quoin.metrics import bleu, exact_match
from quoin.plot import Panel
from quoin.tasks.lr_schedule import schedule
from quoin.tasks.options import TranslationOptions
from quoin.train import GradientTask, Metrics, Place

__all__ = ["TranslationTask", "longest", "pairs", "say", "translation_task"]

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


class TranslationTask(GradientTask):
    """A model of (source, target so far) to scores of the next token learns from pairs, reading the right target, not its own.

    The loss is -ln P(y | x) of a pair over the mean length of a target, so that it is told in nats a token.
    """

    kind = "translation"

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        corpus: PairCorpus,
        options: TranslationOptions,
        place: Place,
        look: Callable[["TranslationTask", Sequence[int]], list[Panel]] | None = None,
    ) -> None:
        batches = Batches(len(corpus.train), options.batch_size, seed=options.seed, rank=place.rank, world=place.world, device=place.device)
        super().__init__(
            model,
            optimizer,
            batches,
            place,
            epochs=options.epochs,
            schedule=schedule(options),
            max_grad_norm=options.clip,
            micro_batch=options.micro_batch,
            loss_scale=float(corpus.train.lengths()[1].double().mean()),
        )
        self.corpus, self.options, self.look = corpus, options, look
        self.facts = pair_facts(corpus)
        self._losses = place.compiled(self.losses)

    def losses(self, batch: PairBatch) -> Tensor:  # -> (b,)
        """-ln P(y | x) of each pair."""
        logits = self.model(batch.source, batch.inputs, source_lengths=batch.source_lengths, target_lengths=batch.target_lengths)
        return sequence_cross_entropy(logits.float(), batch.targets, batch.target_lengths).sum(dim=-1)

    def losses_of(self, batch: PairBatch) -> Tensor:
        return self._losses(batch)

    def pieces(self, rows: Tensor) -> Iterable[tuple[PairBatch]]:
        return ((self.corpus.train.read(piece),) for piece in rows.split(self.micro_batch))

    @torch.no_grad()
    def evaluate(self, part: str) -> Metrics:
        """Nats of a token, and the share of targets said right as a whole; of the training part, of as many pairs as the test part has."""
        if part not in ("train", "validation", "test"):
            return {}
        found: TokenPairs = getattr(self.corpus, part)
        count = min(len(found), len(self.corpus.test)) if part == "train" else len(found)
        self.model.eval()
        nats, tokens = 0.0, 0
        for rows in torch.arange(count).split(SEQUENCES_PER_BATCH):
            batch = found.read(rows)
            nats += float(self.losses(batch).double().sum())
            tokens += int(batch.target_lengths.sum())
        if not math.isfinite(nats):
            raise self.updater.diverged()
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
        for some in torch.tensor(rows).split(SEQUENCES_PER_BATCH):
            batch = part.read(some)
            found = say(self.model, batch.source, batch.source_lengths, beam=self.options.beam, max_tokens=longest(self.facts))
            said += [self.corpus.target_vocabulary.decode(tokens) for tokens in found.tokens]
        return said

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
            "Right and wrong", lambda: plot.bars(bars, x_label="share right, by characters of the source (how many)"), " ".join(told)
        )


@torch.no_grad()
def say(model: Any, source: Tensor, lengths: Tensor, *, beam: int, max_tokens: int) -> Generated:  # (b, n), (b,)
    """The targets that the model gives to sources: greedily, or the best of each source's beam."""
    model.eval()
    prompt = torch.full((len(source), 1), BOS, device=source.device)
    state = model.start(model.encode(source, lengths), max_tokens)
    if beam == 1:
        return greedy(model, state, prompt, max_tokens=max_tokens, end=EOS)
    found = beam_search(model, state, prompt, width=beam, max_tokens=max_tokens, end=EOS)
    return Generated(found.tokens[:, 0], found.lengths[:, 0], found.log_probs[:, 0], found.ended[:, 0])


def longest(facts: PairFacts) -> int:
    """The most tokens that are said: twice as many as the longest target that was learnt from has."""
    return 2 * facts.longest_target
