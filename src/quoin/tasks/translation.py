"""Translation: the task that recipes of encoder-decoder models share, and its metrics and plots."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from quoin import plot
from quoin.data import BOS, EOS, BatchSampler, PairBatch, PairCorpus, PairInfo, TokenPairs, load_pair_corpus, pair_info
from quoin.data.padding import SEQUENCES_PER_BATCH
from quoin.errors import UserError
from quoin.generate import Generated, beam_search, greedy_search
from quoin.layers import build_position_tables
from quoin.losses import sequence_cross_entropy
from quoin.metrics import bleu, exact_match
from quoin.plot import Panel
from quoin.tasks.lr_schedule import make_lr_schedule
from quoin.tasks.optimizer import make_optimizer
from quoin.tasks.own_attention import tell_slow_decoding
from quoin.tasks.sequence_options import TranslationOptions
from quoin.train import DeviceContext, GradientTask, MeanMetrics, Metrics
from quoin.train.fractions import own_batches
from quoin.train.processes import fraction_of, gather_lists

__all__ = ["TranslationTask", "longest", "pair_losses", "pairs", "translate", "translation_task"]

MOST_SHOWN = 6  # examples of each kind in the report
MOST_LENGTHS = 12  # bars of the report


def pairs(options: TranslationOptions, device_context: DeviceContext) -> PairCorpus:
    """The pairs that `options` name, in tokens."""
    return load_pair_corpus(
        options.data,
        source_tokenizer=options.source_tokenizer,
        target_tokenizer=options.target_tokenizer,
        vocab_size=options.vocab_size,
        num_pairs=options.num_pairs,
        seed=options.seed,
        source_column=options.source_column,
        target_column=options.target_column,
        device=device_context.device,
    )


def translation_task(
    model: Callable[[Any, PairInfo], nn.Module],
    options: TranslationOptions,
    device_context: DeviceContext,
    *,
    plot_alignment: Callable[["TranslationTask", Sequence[int]], list[Panel]] | None = None,
) -> "TranslationTask":
    """The recipe's `model` on the pairs that `options` name; `plot_alignment` plots its attention weights on test
    pairs."""
    corpus = pairs(options, device_context)
    net = model(options, pair_info(corpus)).to(device_context.device)
    tell_slow_decoding(net)  # it translates after every epoch
    optimizer = make_optimizer(net.parameters(), options)
    return TranslationTask(net, optimizer, corpus, options, device_context, plot_alignment)


class TranslationTask(GradientTask):
    """A model of (source, target so far) to logits of the next token, trained on pairs with teacher forcing.

    The loss is -ln P(y | x) of a pair over the mean length of a target, so that it is in nats per token.
    """

    kind = "translation"

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        corpus: PairCorpus,
        options: TranslationOptions,
        device_context: DeviceContext,
        plot_alignment: Callable[["TranslationTask", Sequence[int]], list[Panel]] | None = None,
    ) -> None:
        batches = BatchSampler(
            len(corpus.train),
            options.batch_size,
            seed=options.seed,
            rank=device_context.rank,
            world_size=device_context.world_size,
            device=device_context.device,
        )
        super().__init__(
            model,
            optimizer,
            batches,
            device_context,
            epochs=options.epochs,
            schedule=make_lr_schedule(options),
            max_grad_norm=options.max_grad_norm,
            micro_batch_size=options.micro_batch_size,
            loss_scale=float(corpus.train.lengths()[1].double().mean()),
        )
        self.corpus, self.options, self.plot_alignment = corpus, options, plot_alignment
        self.data_info = pair_info(corpus)
        build_position_tables(model, int(max(each.max() for each in corpus.train.lengths())) + 1, device_context.device)
        self._step_losses = device_context.compiled(self.losses, 0)  # each batch is as long as its longest pair

    def losses(self, batch: PairBatch) -> Float[Tensor, "batch"]:
        """-ln P(y | x) of each pair."""
        return pair_losses(self.model, batch)

    def losses_of(self, batch: PairBatch) -> Float[Tensor, "batch"]:
        return self._step_losses(batch)

    def pieces(self, rows: Int[Tensor, "batch"]) -> Iterable[tuple[PairBatch]]:
        among = self.batch_rows(rows)  # padded alike, all pieces have dropout masks of one shape
        return ((self.corpus.train.read(piece.rows, among),) for piece in self.cut(rows))

    @torch.no_grad()
    def evaluate(self, split: str) -> Metrics:
        """Nats per token, and exact match; of the training split, over as many pairs as the test split has."""
        if split not in ("train", "validation", "test"):
            return {}
        found: TokenPairs = getattr(self.corpus, split)
        count = min(len(found), len(self.corpus.test)) if split == "train" else len(found)
        self.model.eval()
        totals = MeanMetrics()
        for rows in own_batches(count, SEQUENCES_PER_BATCH):
            batch = found.read(torch.arange(count)[rows])
            totals.add({"loss": self.losses(batch).double().sum()}, int(batch.target_lengths.sum()))
        means = totals.over_processes().compute()  # of a token
        if not math.isfinite(means["loss"]):
            raise self.updater.diverged()
        hypotheses = gather_lists(self.translations(found, range(count)[fraction_of(count)]))
        references = found.pairs.targets[:count]
        metrics = {**means, "exact_match": exact_match(hypotheses, references)}
        if split == "test":
            kind = "characters" if self.options.target_tokenizer == "char" else "words"
            with suppress(UserError):  # sacrebleu is an extra: without it the rest is still reported
                metrics["bleu"] = bleu(hypotheses, references, tokens=kind)
        return metrics

    def translations(self, split: TokenPairs, rows: Sequence[int]) -> list[str]:
        """The model's translations of the sources of these pairs."""
        hypotheses = []
        for some in torch.tensor(rows, dtype=torch.int64).split(SEQUENCES_PER_BATCH) if len(rows) else ():
            batch = split.read(some)
            found = translate(
                self.model,
                batch.source,
                batch.source_lengths,
                num_beams=self.options.num_beams,
                max_tokens=longest(self.data_info),
            )
            hypotheses += [self.corpus.target_tokenizer.decode(tokens) for tokens in found.tokens]
        return hypotheses

    def panels(self) -> list[Panel]:
        """Exact match by the length of the source, some errors, and attention weights."""
        test = self.corpus.test
        hypotheses = self.translations(test, range(len(test)))
        right = [ours == theirs for ours, theirs in zip(hypotheses, test.pairs.targets)]
        wrong = [row for row, well in enumerate(right) if not well]
        fine = [row for row, well in enumerate(right) if well]
        shown = [*wrong[: MOST_SHOWN // 2], *fine[: MOST_SHOWN // 2]]
        return [
            self._by_length(right, hypotheses, wrong, fine),
            *(self.plot_alignment(self, shown) if self.plot_alignment else []),
        ]

    def _by_length(self, right: list[bool], hypotheses: list[str], wrong: list[int], fine: list[int]) -> Panel:
        pairs = self.corpus.test.pairs
        lengths = torch.tensor([len(source) for source in pairs.sources])
        edges = sorted(
            {round(float(q)) for q in torch.quantile(lengths.double(), torch.linspace(0, 1, MOST_LENGTHS + 1).double())}
        )
        bars = {}
        for low, high in zip(edges, [*edges[1:], edges[-1] + 1]):
            inside = [right[row] for row in ((lengths >= low) & (lengths < high)).nonzero().flatten().tolist()]
            if inside:
                name = f"{low}" if high == low + 1 else f"{low} to {high - 1}"
                bars[f"{name} ({len(inside)})"] = sum(inside) / len(inside)
        caption = [f"{len(fine)} of {len(right)} test translations are exact matches."]
        if fine:
            caption.append(
                "Correct: " + "; ".join(f"{pairs.sources[row]} → {hypotheses[row]}" for row in fine[:MOST_SHOWN]) + "."
            )
        if wrong:
            examples = (
                f"{pairs.sources[row]} → {hypotheses[row]} for {pairs.targets[row]}" for row in wrong[:MOST_SHOWN]
            )
            caption.append("Wrong: " + "; ".join(examples) + ".")
        return Panel(
            "Exact match by source length",
            lambda: plot.bars(bars, x_label="exact match, by characters of the source (how many)"),
            " ".join(caption),
        )


def pair_losses(model: nn.Module, batch: PairBatch) -> Float[Tensor, "batch"]:
    """-ln P(y | x) of each pair under the model."""
    logits = model(batch.source, batch.inputs, source_lengths=batch.source_lengths, target_lengths=batch.target_lengths)
    return sequence_cross_entropy(logits.float(), batch.targets, batch.target_lengths).sum(dim=-1)


@torch.no_grad()
def translate(
    model: Any, source: Int[Tensor, "batch seq"], lengths: Int[Tensor, "batch"], *, num_beams: int, max_tokens: int
) -> Generated:
    """The targets that the model gives to sources: greedily, or the best of each source's beam."""
    model.eval()
    prompt = torch.full((len(source), 1), BOS, device=source.device)
    cache = model.init_cache(model.encode(source, lengths), max_tokens)
    if num_beams == 1:
        return greedy_search(model, cache, prompt, max_tokens=max_tokens, eos_token_id=EOS)
    found = beam_search(model, cache, prompt, num_beams=num_beams, max_tokens=max_tokens, eos_token_id=EOS)
    return Generated(found.tokens[:, 0], found.lengths[:, 0], found.log_probs[:, 0], found.ended[:, 0])


def longest(data_info: PairInfo) -> int:
    """The most tokens that are generated: twice as many as the longest training target has."""
    return 2 * data_info.longest_target
