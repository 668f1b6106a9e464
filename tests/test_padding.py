"""Padding is never looked at: outputs and gradients are those of the problem with the padding cut off, whatever the
padding holds."""

import importlib
import inspect
import math

import pytest
import torch
from torch import Tensor, nn

from padding_cases import ALL, CASES, SEEN
from quoin.errors import UserError
from quoin.layers import (
    Features,
    additive_attention_definition,
    attention_pooling_definition,
    decoder_block,
    feature_attention_definition,
    multi_head_attention_definition,
    nadaraya_watson_definition,
    scaled_dot_product_attention_definition,
    scaled_dot_score,
    softmax_weights,
    transformer_block,
)
from quoin.layers.attention import HeadProjections
from quoin.models import (
    BagOfWordsEncoder,
    BahdanauDecoder,
    RecurrentEncoder,
    RecurrentTextEncoder,
    RNNDecoder,
    Seq2Seq,
    SequenceClassifier,
    Transformer,
    TransformerTextEncoder,
    next_token_log_probs,
    sequence_classifier_definition,
    translation_log_prob,
)
from quoin.tensor import GaussianKernel

FILLS = [math.nan, math.inf, -math.inf, 1e38]
FLAT = [(name, i) for name, makes in CASES.items() for i in range(len(makes))]

PACKAGES = ("tensor", "layers", "models", "losses", "metrics", "prob")
# What takes such a parameter and has no padding to look at.
NO_KEYS = {
    "attention_mask": "makes a mask",
    "check_mask": "looks at masks",
    "sequence_mask": "makes a mask",
    "InnerAttention.weights": "a protocol",
    "dropout_definition": "its mask is of units",
    "masked_conv2d_definition": "its mask is of weights",
    "HiddenMarkovModel.log_prob": "refuses observations that are not finite; lengths are tried in test_contract_hmm.py",
    "HiddenMarkovModel.posterior": "as above",
    "HiddenMarkovModel.rows": "as above",
    "baum_welch": "as above",
    "baum_welch_step": "as above",
}


def masked_names() -> set[str]:
    """Every public function and method that takes a mask or lengths."""
    found = set()
    for package in PACKAGES:
        module = importlib.import_module(f"quoin.{package}")
        for name in module.__all__:
            thing = getattr(module, name)
            callables = {name: thing}
            if inspect.isclass(thing):
                methods = inspect.getmembers(thing, inspect.isfunction)
                callables = {
                    f"{name}.{key}": each
                    for key, each in methods
                    if not key.startswith("_") and "quoin" in each.__module__
                }
            for key, each in callables.items():
                if callable(each) and any(p == "mask" or p.endswith("lengths") for p in _parameters(each)):
                    found.add(key)
    return found


def _parameters(each) -> list[str]:
    try:
        return list(inspect.signature(each).parameters)
    except (ValueError, TypeError):
        return []


def test_everything_that_takes_a_mask_or_lengths_is_tried_here():
    assert masked_names() == set(CASES) | set(TOKENS) | set(NO_KEYS)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize(("name", "which"), FLAT)
def test_padding_is_never_looked_at(name, which, fill):
    generator = torch.Generator().manual_seed(1)
    case = CASES[name][which](generator)
    drawn = [torch.randn(shape, generator=generator) for shape in case.padded]
    padded, cut = [], []
    for x in drawn:
        cut.append(x[..., :SEEN, :].clone().requires_grad_())
        padded.append(torch.cat([x[..., :SEEN, :], torch.full_like(x[..., SEEN:, :], fill)], dim=-2).requires_grad_())
    seen = torch.arange(ALL) < SEEN
    found, expected = case.call(*padded, seen), case.call(*cut, None)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    if not case.gradients or not expected.requires_grad:
        return
    upstream = torch.randn(expected.shape, generator=generator)
    ours = torch.autograd.grad(found, [*padded, *case.leaves], upstream, allow_unused=True)
    right = torch.autograd.grad(expected, [*cut, *case.leaves], upstream, allow_unused=True)
    for mine, its, x in zip(ours, right, [*padded, *case.leaves], strict=True):
        mine = torch.zeros_like(x) if mine is None else mine
        its = mine.new_zeros(x.shape) if its is None else its
        if mine.shape != its.shape:  # a padded one: what is seen, and exact zeros
            assert torch.equal(mine[..., SEEN:, :], torch.zeros_like(mine[..., SEEN:, :]))
            mine, its = mine[..., :SEEN, :], its[..., :SEEN, :]
        torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-5)


GENERATOR = torch.Generator().manual_seed(0)
PAD = 10


def reader(kind: str) -> nn.Module:
    made = {
        "bag": lambda: BagOfWordsEncoder(11, 4, generator=GENERATOR),
        "recurrent": lambda: RecurrentTextEncoder(nn.GRU, 11, 4, hidden_dim=2, generator=GENERATOR),
        "transformer": lambda: TransformerTextEncoder(
            11, [transformer_block(4, 2, generator=GENERATOR)], generator=GENERATOR
        ),
    }
    return made[kind]()


def classify_definition(model, x, n):
    judge = model.head
    return sequence_classifier_definition(
        model.encoder, x, torch.full((2,), SEEN) if n is None else n, judge.weight, judge.bias
    )


def translators() -> list[nn.Module]:
    read = RecurrentEncoder(nn.GRU, 11, 4, 3, generator=GENERATOR)
    blocks = [transformer_block(4, 2, generator=GENERATOR)], [decoder_block(4, 2, generator=GENERATOR)]
    return [
        Seq2Seq(read, RNNDecoder(nn.GRU, 11, 4, 3, generator=GENERATOR)),
        Seq2Seq(read, BahdanauDecoder(nn.GRU, 11, 4, 3, read.memory_dim, generator=GENERATOR)),
        Transformer(11, 11, *blocks, generator=GENERATOR),
    ]


TARGET = torch.tensor([[1, 2, 3, 4], [4, 3, 2, 2]])
RECURRENT, LOOKING, ATTENDING = translators()
# A model, the table that the padding's code stands in (None where its codes are scores as well), and what tokens and
# lengths give.
TOKENS = {
    "BagOfWordsEncoder.forward": [(m := reader("bag"), m.token_embedding, lambda model, x, n: model(x, n)[:, :SEEN])],
    "RecurrentTextEncoder.forward": [
        (m := reader("recurrent"), m.token_embedding, lambda model, x, n: model(x, n)[:, :SEEN])
    ],
    "TransformerTextEncoder.forward": [
        (m := reader("transformer"), m.token_embedding, lambda model, x, n: model(x, n)[:, :SEEN])
    ],
    "SequenceClassifier.forward": [
        (
            m := SequenceClassifier(reader(kind), 3, generator=GENERATOR),
            m.encoder.token_embedding,
            lambda model, x, n: model(x, n),
        )
        for kind in ("bag", "recurrent", "transformer")
    ],
    "sequence_classifier_definition": [
        (
            m := SequenceClassifier(reader("bag"), 3, generator=GENERATOR),
            m.encoder.token_embedding,
            classify_definition,
        ),
    ],
    "RecurrentEncoder.forward": [
        (
            m := RecurrentEncoder(kind, 11, 4, 3, bidirectional=both, generator=GENERATOR),
            m.token_embedding,
            lambda model, x, n: model(x, n).memory[:, :SEEN],
        )
        for kind in (nn.GRU, nn.LSTM, nn.RNN)
        for both in (True, False)
    ],
    "Seq2Seq.encode": [
        (RECURRENT, RECURRENT.encoder.token_embedding, lambda model, x, n: model.encode(x, n).state.tensors[0])
    ],
    "Seq2Seq.forward": [
        *[
            (m, m.encoder.token_embedding, lambda model, x, n: model(x, TARGET, source_lengths=n))
            for m in (RECURRENT, LOOKING)
        ],
        *[(m, None, lambda model, x, n: model(TARGET, x, target_lengths=n)[:, :SEEN]) for m in (RECURRENT, LOOKING)],
    ],
    "Transformer.encode": [
        (ATTENDING, ATTENDING.source_embedding, lambda model, x, n: model.encode(x, n).memory[:, :SEEN])
    ],
    "Transformer.forward": [
        (ATTENDING, ATTENDING.source_embedding, lambda model, x, n: model(x, TARGET, source_lengths=n)),
        (ATTENDING, None, lambda model, x, n: model(TARGET, x, target_lengths=n)[:, :SEEN]),
    ],
    "next_token_log_probs": [
        (
            ATTENDING,
            ATTENDING.source_embedding,
            lambda model, x, n: next_token_log_probs(model, x, TARGET, source_lengths=n),
        ),
        (
            LOOKING,
            LOOKING.encoder.token_embedding,
            lambda model, x, n: next_token_log_probs(model, x, TARGET, source_lengths=n),
        ),
    ],
    "translation_log_prob": [
        (
            m,
            None,
            lambda model, x, n: translation_log_prob(model, x, x, bos_token_id=0, source_lengths=n, target_lengths=n),
        )
        for m in (ATTENDING, LOOKING)
    ],
}
FLAT_TOKENS = [(name, i) for name, cases in TOKENS.items() for i in range(len(cases))]


@pytest.mark.parametrize(("name", "which"), FLAT_TOKENS)
@pytest.mark.parametrize("fill", [*FILLS, None])
def test_no_token_of_the_padding_is_read(name, which, fill):
    model, table, call = TOKENS[name][which]
    tokens = torch.tensor([[1, 2, 3, PAD, PAD], [4, 1, 9, PAD, PAD]])
    if fill is None or table is None:  # any other token, then
        tokens[:, SEEN:] = torch.tensor([[5, 1], [0, 7]])
        kept = None
    else:
        kept = table.weight.detach().clone()
        with torch.no_grad():
            table.weight[PAD] = fill
    try:
        found = call(model, tokens, torch.full((2,), SEEN))
        expected = call(model, tokens[:, :SEEN], None)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
        upstream, weights = (
            torch.randn(expected.shape, generator=torch.Generator().manual_seed(2)),
            list(model.parameters()),
        )
        ours = torch.autograd.grad(found, weights, upstream, allow_unused=True)
        right = torch.autograd.grad(expected, weights, upstream, allow_unused=True)
        for mine, its in zip(ours, right, strict=True):
            assert (mine is None) == (its is None)
            if mine is not None:
                torch.testing.assert_close(mine, its, rtol=1e-4, atol=1e-5)
    finally:
        if kept is not None:
            with torch.no_grad():
                table.weight.copy_(kept)


def projected(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    same = HeadProjections(lambda x: x, lambda x: x, lambda x: x)
    return multi_head_attention_definition(q, k, v, [same, same], torch.ones(6, 2), mask=mask).output


SHARED = [
    torch.randn(4, 3, generator=GENERATOR),
    torch.randn(4, 3, generator=GENERATOR),
    torch.randn(4, generator=GENERATOR),
]
PAIRWISE = {
    "exact": lambda q, k, v, mask: scaled_dot_product_attention_definition(q, k, v, mask).output,
    "biased": lambda q, k, v, mask: (
        scaled_dot_product_attention_definition(q, k, v, mask, 0.5, torch.zeros(mask.shape)).output
    ),
    "additive": lambda q, k, v, mask: additive_attention_definition(q, k, v, *SHARED, mask).output,
    "pooling": lambda q, k, v, mask: (
        attention_pooling_definition(q, k, v, scaled_dot_score, softmax_weights, mask=mask).output
    ),
    "window": lambda q, k, v, mask: nadaraya_watson_definition(q, k, v, GaussianKernel(), 1.0, mask=mask).output,
    "features": lambda q, k, v, mask: (
        feature_attention_definition(Features(q.exp()), Features(k.square()), v, mask).output
    ),
    "scaled features": lambda q, k, v, mask: (
        feature_attention_definition(Features(q.exp()), Features(k.square(), k[..., :1]), v, mask).output
    ),
    "heads": projected,
}


@pytest.mark.parametrize("fill", FILLS[:3])
@pytest.mark.parametrize("where", ["key", "value"])
@pytest.mark.parametrize("attend", PAIRWISE.values(), ids=PAIRWISE)
def test_in_a_definition_a_number_reaches_only_the_queries_that_may_see_it(attend, where, fill):
    generator = torch.Generator().manual_seed(3)
    q, k, v = (torch.randn(2, 4, 3, generator=generator) for _ in range(3))
    spoilt = {"key": k, "value": v}
    spoilt[where] = spoilt[where].clone()
    spoilt[where][:, 2] = fill  # seen by the last two queries of a causal mask
    output = attend(q, *spoilt.values(), torch.ones(4, 4, dtype=torch.bool).tril())
    expected = attend(*(x[:, :2] for x in (q, *spoilt.values())), torch.ones(2, 2, dtype=torch.bool).tril())
    torch.testing.assert_close(output[:, :2], expected)
    if where == "value" or math.isnan(fill):  # an infinite key may have a weight of one, or of nothing
        assert not output[:, 2:].isfinite().any()


def test_lengths_and_masks_that_do_not_fit_are_told_in_one_line():
    from quoin.layers import SelfAttention

    layer, x = SelfAttention(4, 3, 2), torch.zeros(2, 5, 4)
    for mistaken, words in (
        (lambda: layer(x, lengths=torch.tensor([5, 6])), "valid lengths from 0 to 5, got 6"),
        (lambda: layer(x, lengths=torch.tensor([5])), "axis b of query to be 1 as in lengths"),
        (lambda: layer(x[0], lengths=torch.tensor([5])), "query with 3 axes"),
        (lambda: layer(x, mask=torch.ones(3, 5, 5, dtype=torch.bool)), r"broadcasts to \(2, 5, 5\)"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)
