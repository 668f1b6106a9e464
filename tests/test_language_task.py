"""Recurrent language models and their task: stepping is reading, the state is carried and cut, every character is
judged once."""

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from quoin.data import CharTokenizer, Text, TextInfo, keyed_generator, text_info, tokenize_text
from quoin.errors import UserError
from quoin.metrics import sliding_window_nll
from quoin.models import CausalLM, DecodingCache, RecurrentLanguageModel
from quoin.plot import shaded_text
from quoin.runs import find_recipe
from quoin.tasks.language_modeling import LanguageTask, StatefulLanguageTask, make_language_optimizer
from quoin.tasks.sequence_options import LanguageOptions, RecurrentOptions
from quoin.train import DeviceContext, NonFiniteLossError

kinds = st.sampled_from([nn.RNN, nn.GRU, nn.LSTM])
few = settings(deadline=None, max_examples=15)
WORDS = "the cat sat on the mat; the dog sat on the log. "


def text_of(length: int = 2000):
    drawn = torch.randint(len(WORDS) - 8, (length // 8,), generator=keyed_generator("words"))
    text = Text("words", "".join(WORDS[int(at) : int(at) + 8] for at in drawn))
    return tokenize_text(text, CharTokenizer.fit(text.content))


def small(kind=nn.LSTM, **given):
    return RecurrentLanguageModel(kind, 11, 6, 8, generator=torch.Generator().manual_seed(0), **given).double()


def carried_task(options: RecurrentOptions, kind=nn.LSTM, text=None):
    text = text or text_of()
    weights = keyed_generator("weights", options.seed)
    net = RecurrentLanguageModel(
        kind, text.tokenizer.vocab_size, options.embed_dim, options.hidden_dim, generator=weights
    )
    return StatefulLanguageTask(net, make_language_optimizer(net, options), text, options, DeviceContext())


@few
@given(
    kinds,
    st.integers(1, 3),
    st.integers(1, 3),
    st.lists(st.integers(1, 4), min_size=1, max_size=4),
    st.integers(0, 2**32),
)
def test_steps_are_the_whole(kind, layers, batch, pieces, seed):
    model = small(kind, num_layers=layers)
    assert isinstance(model, CausalLM)
    tokens = torch.randint(11, (batch, sum(pieces)), generator=torch.Generator().manual_seed(seed))
    whole, found, state = model(tokens), [], model.init_cache(batch, 0)
    assert isinstance(state, DecodingCache)
    for piece in tokens.split(pieces, dim=1):
        logits, state = model.decode_step(state, piece)
        found.append(logits)
    torch.testing.assert_close(torch.cat(found, dim=1), whole)
    rows = torch.randint(batch, (4,), generator=torch.Generator().manual_seed(seed))
    again, _ = model.decode_step(state.select(rows), tokens[rows, -1:])
    torch.testing.assert_close(again, model.decode_step(state, tokens[:, -1:]).logits[rows])


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_weights_start_as_told(kind):
    model = small(kind, num_layers=2)
    for name, weight in model.cell.named_parameters():
        if name.startswith("weight_hh"):
            for gate in weight.split(8):
                torch.testing.assert_close(
                    gate @ gate.mT, torch.eye(8, dtype=torch.float64), rtol=0, atol=2e-6
                )  # drawn in float32
        elif name.startswith("bias"):
            expected = torch.zeros_like(weight)
            if kind is nn.LSTM and name.startswith("bias_ih"):
                expected[8:16] = 1  # torch's order: input, forget, cell, output
            assert torch.equal(weight, expected)
    tied = RecurrentLanguageModel(kind, 11, 8, 8, tie_embeddings=True)
    assert tied.lm_head.weight is tied.token_embedding.weight


def test_what_cannot_be_a_model_costs_a_line():
    with pytest.raises(UserError, match="hidden_dim of 1 or more, got 0"):
        RecurrentLanguageModel(nn.GRU, 5, 4, 0)
    with pytest.raises(UserError, match="got 8 and 4: make them equal"):
        RecurrentLanguageModel(nn.GRU, 5, 4, 8, tie_embeddings=True)
    with pytest.raises(UserError, match="dropout probability from 0 to below 1, got nan"):
        RecurrentLanguageModel(nn.GRU, 5, 4, 8, dropout=math.nan)
    with pytest.raises(UserError, match="tokens from 0 to 10, got 0 to 11"):
        small()(torch.tensor([[0, 11]]))
    with pytest.raises(UserError, match=r"token ids \(sequences, steps\), got torch"):
        small()(torch.zeros(1, 3))
    with pytest.raises(UserError, match="2 sequences as in the cache, got 3"):
        small().decode_step(small().init_cache(2), torch.zeros(3, 1, dtype=torch.long))
    with pytest.raises(UserError, match="at least 1"):
        find_recipe("lstm-lm").options(hidden_dim=0)
    with pytest.raises(UserError, match=r"32 streams of 64 .* got 200"):
        carried_task(RecurrentOptions(), text=text_of(250))


@few
@given(st.integers(1, 60), st.integers(1, 20), st.integers(1, 20), st.integers(0, 2**32))
def test_sliding_costs_each_token_once(count, window, fresh, seed):
    """Against the sentence, token by token: the model sees no more than its window, and the last `fresh` places
    count."""
    fresh = min(fresh, window)
    tokens = torch.randint(11, (count + 1,), generator=torch.Generator().manual_seed(seed))
    model = small(nn.RNN).eval()
    found = sliding_window_nll(model, tokens, window=window, stride=fresh)
    window, fresh = min(window, count), min(fresh, count, window)
    for place in range(count):
        end = min((place // fresh + 1) * fresh, count)
        start = max(end - window, 0)
        logits = model(tokens[None, start : place + 1])[0, -1]
        torch.testing.assert_close(
            found[place].double(), functional.cross_entropy(logits, tokens[place + 1]), rtol=1e-5, atol=1e-5
        )
    with pytest.raises(UserError, match="from 1 to all 4"):
        sliding_window_nll(model, tokens, window=4, stride=5)


def test_a_wide_window_is_the_exact_cost():
    """With one window over all, the sum is -ln P of the whole text, and bits per character divide it by the
    characters."""
    text = text_of()
    task = carried_task(RecurrentOptions(embed_dim=8, hidden_dim=8, batch_size=4, context_length=10), text=text)
    assert text.test.before is not None
    assert len(text.test.tokens) == text.test.num_characters < 1000
    tokens = torch.cat([torch.tensor([text.test.before]), text.test.tokens])[None]
    logits = task.model.eval()(tokens[:, :-1]).detach()
    nats = float(functional.cross_entropy(logits[0], tokens[0, 1:], reduction="sum"))
    found = task.evaluate("test")
    assert found["loss"] == pytest.approx(nats / text.test.num_characters, rel=1e-5)
    assert found["bits_per_character"] == pytest.approx(nats / math.log(2) / text.test.num_characters, rel=1e-5)
    assert found["perplexity"] == pytest.approx(math.exp(found["loss"]))
    assert task.evaluate("other") == {}


def test_the_state_is_carried_and_its_gradient_cut():
    """Two batches by hand: the second starts from the numbers that the first ended with, and no gradient crosses."""
    options = RecurrentOptions(
        embed_dim=8,
        hidden_dim=8,
        batch_size=4,
        context_length=10,
        dropout=0.0,
        max_grad_norm=0.0,
        lr=1e-3,
        weight_decay=0.0,
    )
    task = carried_task(options)
    twin = carried_task(options).model
    twin.load_state_dict(task.model.state_dict())
    batches, state = iter(task.batches), twin.init_cache(4)
    for _ in range(3):
        rows = next(batches)
        inputs, targets = task.batches.read(rows)
        twin.load_state_dict(task.model.state_dict())
        logits, after = twin.read(state, inputs)
        twin.zero_grad()
        functional.cross_entropy(logits.flatten(0, 1), targets.flatten()).backward()
        task.step(rows)
        for mine, its in zip(twin.parameters(), task.model.parameters(), strict=True):
            torch.testing.assert_close(mine.grad, its.grad)
        state = after.detach()
        for mine, its in zip(state.tensors, task.hidden_states[0].tensors, strict=True):
            torch.testing.assert_close(mine, its)
            assert not its.requires_grad
    # the rest of the epoch, and the first batch of the next
    for rows in itertools.chain(batches, [next(iter(task.batches))]):
        before = task.hidden_states
        task.step(rows)
    begun = task.model.read(task.model.init_cache(4), task.batches.read(rows).inputs)  # weights moved by one small step
    assert (
        torch.dist(task.hidden_states[0].tensors[0], begun[1].tensors[0])
        < 0.05
        < torch.dist(before[0].tensors[0], begun[1].tensors[0])
    )


def test_micro_batches_add_up():
    options = RecurrentOptions(embed_dim=8, hidden_dim=8, batch_size=6, context_length=7, dropout=0.0)
    whole, pieces = carried_task(options), carried_task(RecurrentOptions(**{**vars(options), "micro_batch_size": 4}))
    for one, other in itertools.islice(zip(whole.batches, pieces.batches), 3):
        torch.testing.assert_close(whole.step(one)["loss"], pieces.step(other)["loss"])
    assert [each.tensors[0].shape[1] for each in pieces.hidden_states] == [4, 2]
    torch.testing.assert_close(whole.model.lm_head.weight, pieces.model.lm_head.weight)


def test_a_loss_that_is_no_number_stops_the_run():
    task = carried_task(RecurrentOptions(embed_dim=8, hidden_dim=8, batch_size=4, context_length=10))
    rows = next(iter(task.batches))
    with torch.no_grad():
        task.model.lm_head.bias[0] = math.nan
    with pytest.raises(NonFiniteLossError, match=r"step 1; first bad tensor: parameter lm_head.bias"):
        task.step(rows)
    with pytest.raises(NonFiniteLossError, match=r"parameter lm_head.bias is not finite"):
        task.state_dict()
    with pytest.raises(NonFiniteLossError):
        task.evaluate("test")


def test_windows_of_a_text_learn_too():
    """A model without state on the same text, and the pictures of both kinds."""
    text, options = text_of(), LanguageOptions(batch_size=4, context_length=8, epochs=2, lr=0.01)
    net = RecurrentLanguageModel(nn.GRU, text.tokenizer.vocab_size, 8, 16, generator=keyed_generator("weights"))
    task = LanguageTask(net, make_language_optimizer(net, options), text, options, DeviceContext())
    before = task.evaluate("validation")["bits_per_character"]
    for rows in task.batches:
        task.step(rows)
    assert task.evaluate("validation")["bits_per_character"] < before - 0.2
    assert [panel.title for panel in task.panels()] == ["Bits per token on the test text", "Sample"]
    data_info = TextInfo.from_json(text_info(text).as_json())
    assert data_info == text_info(text)
    assert data_info.tokenizer.decode(text.test.tokens[:9]) == text.tokenizer.decode(text.test.tokens[:9])
    with pytest.raises(UserError, match="restore the file"):
        TextInfo.from_json({"source": "x"})


def test_writing_shows_what_it_was_given():
    drawing = shaded_text(["ab", "\n", "漢", " $"], [0.5, 1, 2, 3], columns=3, label="bits")
    assert drawing.png()[:4] == b"\x89PNG"
    with pytest.raises(UserError, match="a shade for each of 2 pieces, got 3"):
        shaded_text(["a", "b"], [1, 2, 3])
    with pytest.raises(UserError, match="expected a text"):
        shaded_text([])
