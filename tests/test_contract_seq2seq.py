"""Encoders and decoders against their definitions, in value and gradient; padding that counts nothing; steps that are
the whole."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quoin.errors import UserError
from quoin.layers import (
    additive_attention_definition,
    gru_cell_definition,
    lstm_cell_definition,
    recurrent_definition,
    recurrent_weights,
    rnn_cell_definition,
)
from quoin.losses import sequence_cross_entropy, sequence_cross_entropy_definition
from quoin.models import (
    BahdanauDecoder,
    RecurrentEncoder,
    RNNDecoder,
    Seq2Seq,
    bahdanau_decoder_definition,
    next_token_log_probs,
    translation_log_prob,
)
from quoin.tensor import sequence_mask

CELLS = {nn.RNN: rnn_cell_definition, nn.GRU: gru_cell_definition, nn.LSTM: lstm_cell_definition}
TOLERANCE = {torch.float64: 1e-10, torch.float32: 2e-5}
SOURCES, TARGETS = 7, 6


def model_of(cell, dtype, seed, *, layers=1, attention=True, bidirectional=True):
    generator = torch.Generator().manual_seed(seed)
    encoder = RecurrentEncoder(cell, SOURCES, 3, 5, num_layers=layers, bidirectional=bidirectional, generator=generator)
    if attention:
        decoder = BahdanauDecoder(
            cell,
            TARGETS,
            4,
            5,
            encoder.memory_dim,
            attention_dim=6,
            num_layers=layers,
            num_suppressed=2,
            generator=generator,
        )
    else:
        decoder = RNNDecoder(cell, TARGETS, 4, 5, num_layers=layers, num_suppressed=2, generator=generator)
    return Seq2Seq(encoder, decoder).to(dtype)


def drawn(seed, batch, source, target):
    generator = torch.Generator().manual_seed(seed + 1)
    lengths = torch.randint(1, source + 1, (batch,), generator=generator)
    lengths[0] = source
    tokens = torch.randint(SOURCES, (batch, source), generator=generator)
    return tokens, lengths, torch.randint(TARGETS, (batch, target), generator=generator)


def close(found, right, dtype):
    torch.testing.assert_close(found, right, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])


sizes = {
    "batch": st.integers(1, 4),
    "source": st.integers(1, 6),
    "target": st.integers(1, 5),
    "seed": st.integers(0, 10**6),
}


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=8, deadline=None)
@given(**sizes)
def test_bahdanau_is_its_definition(cell, dtype, batch, source, target, seed):
    model = model_of(cell, dtype, seed)
    tokens, lengths, said = drawn(seed, batch, source, target)
    decoder, score = model.decoder, model.decoder.attention.score
    read = model.encode(tokens, lengths)
    found = decoder.decode_step(decoder.init_cache(read), said)
    right = bahdanau_decoder_definition(
        decoder.token_embedding(said),
        read.memory,
        tuple(each[0] for each in read.state.tensors),
        score.query_weight,
        score.key_weight,
        score.output_weight,
        CELLS[cell],
        recurrent_weights(decoder.cell)[0][0],
        sequence_mask(lengths, source).unsqueeze(1),
    )
    logits = torch.cat([right.output, right.contexts], dim=-1) @ decoder.lm_head.weight.mT + decoder.lm_head.bias
    close(found.logits[..., 2:], logits, dtype)
    assert (found.logits[..., :2] == -torch.inf).all()
    close(found.weights, right.weights, dtype)
    for ours, theirs in zip(found.cache.recurrent.tensors, right.state):
        close(ours[0], theirs, dtype)
    upstream = torch.randn(logits.shape, generator=torch.Generator().manual_seed(seed)).to(dtype)
    parameters = list(model.parameters())
    slopes = torch.autograd.grad(found.logits[..., 2:], parameters, upstream, retain_graph=True, allow_unused=True)
    expected = torch.autograd.grad(logits, parameters, upstream, allow_unused=True)
    for ours, theirs in zip(slopes, expected, strict=True):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            close(ours, theirs, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=6, deadline=None)
@given(**sizes, bidirectional=st.booleans(), layers=st.integers(1, 2))
def test_a_padded_source_is_read_as_if_alone(cell, dtype, batch, source, target, seed, bidirectional, layers):
    model = model_of(cell, dtype, seed, bidirectional=bidirectional, layers=layers)
    tokens, lengths, said = drawn(seed, batch, source, target)
    ways, states = (2 if bidirectional else 1), (2 if cell is nn.LSTM else 1)
    found = model.encode(tokens, lengths)
    together = model(tokens, said, source_lengths=lengths)
    for row, length in enumerate(lengths.tolist()):
        codes = model.encoder.token_embedding(tokens[row : row + 1, :length])
        zeros = [codes.new_zeros(layers * ways, 1, 5)] * states
        right = recurrent_definition(CELLS[cell], codes, zeros, recurrent_weights(model.encoder.cell))
        close(found.memory[row, :length], right.output[0], dtype)
        assert (found.memory[row, length:] == 0).all()
        close(together[row : row + 1], model(tokens[row : row + 1, :length], said[row : row + 1]), dtype)
        for kind, each in enumerate(right.state):
            if bidirectional:
                bridge = model.encoder.bridges[kind]
                each = torch.tanh(
                    each.unflatten(0, (layers, 2)).movedim(1, -2).flatten(-2) @ bridge.weight.mT + bridge.bias
                )
            close(found.state.tensors[kind][:, row], each[:, 0], dtype)


def test_of_several_layers_the_uppermost_asks():
    model = model_of(nn.GRU, torch.float64, 3, layers=2)
    tokens, lengths, said = drawn(3, 4, 5, 1)
    read = model.encode(tokens, lengths)
    score = model.decoder.attention.score
    query = read.state.tensors[0][1].unsqueeze(1)
    weights = score.query_weight, score.key_weight, score.output_weight
    right = additive_attention_definition(
        query, read.memory, read.memory, *weights, sequence_mask(lengths, 5).unsqueeze(1)
    )
    close(model.decoder.decode_step(model.decoder.init_cache(read), said).weights, right[1], torch.float64)


@pytest.mark.parametrize("attention", [True, False])
@pytest.mark.parametrize("cell", CELLS)
@settings(max_examples=6, deadline=None)
@given(**sizes, layers=st.integers(1, 2))
def test_steps_are_the_whole_and_states_can_be_chosen(cell, attention, batch, source, target, seed, layers):
    model = model_of(cell, torch.float64, seed, attention=attention, layers=layers)
    tokens, lengths, said = drawn(seed, batch, source, target)
    whole = model(tokens, said, source_lengths=lengths)
    rows = torch.randint(batch, (5,), generator=torch.Generator().manual_seed(seed))
    state = model.init_cache(model.encode(tokens, lengths), 0).select(rows)
    for place in range(target):
        logits, state = model.decode_step(state, said[rows, place : place + 1])
        close(logits[:, 0], whole[rows, place], torch.float64)


@pytest.mark.parametrize("attention", [True, False])
@settings(max_examples=10, deadline=None)
@given(**sizes)
def test_a_translation_has_the_chance_of_its_steps(attention, batch, source, target, seed):
    model = model_of(nn.GRU, torch.float64, seed, attention=attention)
    tokens, lengths, said = drawn(seed, batch, source, target)
    said = said.clamp(min=2)
    target_lengths = torch.randint(1, target + 1, (batch,), generator=torch.Generator().manual_seed(seed))
    padded = said.masked_fill(~sequence_mask(target_lengths, target), 0)
    found = translation_log_prob(
        model, tokens, padded, bos_token_id=1, source_lengths=lengths, target_lengths=target_lengths
    )
    losses = sequence_cross_entropy(
        model(tokens, torch.cat([torch.ones_like(padded[:, :1]), padded[:, :-1]], dim=1), source_lengths=lengths),
        padded,
        target_lengths,
    )
    close(-losses.sum(dim=-1), found, torch.float64)
    for row in range(batch):
        total = torch.zeros((), dtype=torch.float64)
        # one factor after another, each from the source and the words before
        for place in range(int(target_lengths[row])):
            prefix = torch.cat([torch.tensor([1]), said[row, :place]]).unsqueeze(0)
            law = next_token_log_probs(model, tokens[row : row + 1, : lengths[row]], prefix)
            assert float(law.detach()[0, -1].exp().sum()) == pytest.approx(1)
            total = total + law[0, -1, said[row, place]]
        close(found[row], total, torch.float64)
    (slope,) = torch.autograd.grad(found.sum(), model.encoder.token_embedding.weight)
    assert slope.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@settings(max_examples=15, deadline=None)
@given(batch=st.integers(1, 4), target=st.integers(1, 6), vocabulary=st.integers(1, 5), seed=st.integers(0, 10**6))
def test_the_loss_sees_no_padding(dtype, batch, target, vocabulary, seed):
    generator = torch.Generator().manual_seed(seed)
    logits = (3 * torch.randn(batch, target, vocabulary, generator=generator)).to(dtype)
    said = torch.randint(vocabulary, (batch, target), generator=generator)
    lengths = torch.randint(target + 1, (batch,), generator=generator)
    real = sequence_mask(lengths, target)
    logits = torch.where(real.unsqueeze(-1), logits, torch.nan).requires_grad_()
    found = sequence_cross_entropy(logits, said, lengths)
    right = sequence_cross_entropy_definition(logits, said, lengths)
    close(found, right, dtype)
    assert (found[~real] == 0).all()
    upstream = torch.randn(batch, target, generator=generator).to(dtype)
    (slope,) = torch.autograd.grad(found, logits, upstream)
    (expected,) = torch.autograd.grad(right, logits, upstream)
    close(slope, expected, dtype)
    assert (slope[~real] == 0).all()


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: model_of(nn.GRU, torch.float32, 0).encode(torch.zeros(2, 0, dtype=torch.long)),
            "a token or more each",
        ),
        (
            lambda: model_of(nn.GRU, torch.float32, 0).encode(torch.zeros(1, 2, dtype=torch.long), torch.tensor([0])),
            "leave out the empty",
        ),
        (
            lambda: model_of(nn.GRU, torch.float32, 0).encode(torch.zeros(1, 2, dtype=torch.long), torch.tensor([3])),
            r"1 to 2, got \[3\]",
        ),
        (
            lambda: model_of(nn.GRU, torch.float32, 0).encode(torch.zeros(2, 2, dtype=torch.long), torch.tensor([1])),
            "expected 2 lengths",
        ),
        (lambda: BahdanauDecoder(nn.GRU, 3, 4, 5, 6, attention_dim=0), "hidden"),
        (lambda: model_of(nn.GRU, torch.float32, 0).encode(torch.full((1, 2), SOURCES)), "expected tokens from 0 to 6"),
        (lambda: RNNDecoder(nn.GRU, 3, 4, 5, num_suppressed=3), "leave one token to predict"),
        (lambda: RNNDecoder(nn.GRU, 3, 4, 0), "hidden_dim of 1 or more, got 0"),
        (lambda: RecurrentEncoder(nn.GRU, 3, 4, 5, dropout=1.0), "dropout"),
        (lambda: Seq2Seq(RecurrentEncoder(nn.GRU, 3, 4, 5), RNNDecoder(nn.GRU, 3, 4, 6)), "units 5, got 6"),
        (
            lambda: Seq2Seq(RecurrentEncoder(nn.GRU, 3, 4, 5), RNNDecoder(nn.LSTM, 3, 4, 5)),
            "kind of cell GRU, got LSTM",
        ),
    ],
)
def test_mistakes_are_told_in_one_line(call, words):
    with pytest.raises(UserError, match=words) as told:
        call()
    assert "\n" not in str(told.value)
