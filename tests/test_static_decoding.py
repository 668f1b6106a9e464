"""Static steps against ordinary ones, on the CPU, where the step that CUDA replays runs as it is written."""

import gc
import weakref

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from decoding_cases import MODELS, POSITIONS, VOCAB, WINDOWED, ordinary, prompt, rows, shaken, statically, windowed
from quoin.generate import TokenSampler, greedy_token, sample_tokens
from quoin.generate import static_steps as module
from quoin.generate.choosing import first_arrival
from quoin.generate.static_decoder import StaticDecoder, round_up_limit
from quoin.generate.static_steps import can_step_statically, static_steps
from quoin.layers import ExactAttention, RelativePositionBias, transformer_block
from quoin.layers.device_position import DevicePosition
from quoin.models import TransformerLanguageModel

pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out
every_model = pytest.mark.parametrize("name", MODELS)


def same(found, wanted):
    texts, log_probs, ended = rows(found)
    assert texts == wanted[0]
    assert found.tokens.shape[1] == max(map(len, texts))  # nothing is said after all have ended
    assert log_probs == pytest.approx(wanted[1], abs=1e-9)
    assert ended == wanted[2]


@every_model
@pytest.mark.parametrize("batch", [1, 3])
def test_greedy_tokens_and_their_probabilities_are_those_of_ordinary_steps(name, batch):
    model, begin, most = shaken(name), prompt(batch, 5), 40  # crosses limits 8, 16 and 32, and 16 steps twice
    wanted = ordinary(model, model.init_cache(batch, POSITIONS), begin, greedy_token, most)
    assert len({token for text in wanted[0] for token in text}) > 1  # a model that says one word tests nothing
    same(statically(model, model.init_cache(batch, POSITIONS), begin, greedy_token, most), wanted)


@every_model
def test_every_logit_is_that_of_the_whole_sequence_at_once(name):
    model, text = shaken(name, 1), prompt(2, 30, 1)
    with torch.inference_mode():
        whole = model(text)
        logits, cache = model.decode_step(model.init_cache(2, 30), text[:, :3])
        decoder = StaticDecoder(model, logits, 30, greedy_token, first_limit=4)
        decoder.begin(cache, 3, logits)
        for position in range(3, 30):
            decoder.token.copy_(text[:, position : position + 1])
            decoder.advance(model, 1)
            decoder.collect()
            torch.testing.assert_close(decoder.last_logits, whole[:, position], rtol=1e-9, atol=1e-9)


@every_model
def test_a_sequence_that_has_ended_says_no_more_and_all_ended_stop(name):
    model, begin = shaken(name, 2), prompt(3, 4, 2)
    free = ordinary(model, model.init_cache(3, POSITIONS), begin, greedy_token, 40)[0]
    for eos in sorted({text[20] for text in free} | {free[0][0]}):
        wanted = ordinary(model, model.init_cache(3, POSITIONS), begin, greedy_token, 40, eos)
        same(statically(model, model.init_cache(3, POSITIONS), begin, greedy_token, 40, eos), wanted)


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize(("window", "stride", "length"), [(8, 4, 3), (12, 5, 12), (9, 9, 20), (33, 16, 5)])
def test_windows_slide_as_by_ordinary_steps(name, window, stride, length):
    model, begin = windowed(name, window, stride), prompt(2, length, 3)
    wanted = ordinary(model, model.init_cache(2), begin, greedy_token, 45)
    same(statically(model, model.init_cache(2), begin, greedy_token, 45, first_limit=8), wanted)


@pytest.mark.parametrize("name", ["gpt", "lstm", "gpt, linear"])
@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 9}, {"top_p": 0.8}])
def test_sampled_tokens_are_those_of_the_generator_which_goes_on_after(name, options):
    model, begin = shaken(name), prompt(3, 5)
    ours, theirs = (torch.Generator().manual_seed(7) for _ in range(2))
    wanted = ordinary(model, model.init_cache(3, POSITIONS), begin, TokenSampler(**options, generator=theirs), 20)
    for again in range(2):  # the second time by the decoder that was kept
        ours.manual_seed(7)
        found = statically(model, model.init_cache(3, POSITIONS), begin, TokenSampler(**options, generator=ours), 20)
        same(found, wanted)
        assert torch.equal(ours.get_state(), theirs.get_state()), again


def test_a_way_to_choose_of_ones_own_serves_too():
    model, begin = shaken("gpt"), prompt(2, 5)
    least = lambda logits: logits.argmin(dim=-1)  # noqa: E731
    wanted = ordinary(model, model.init_cache(2, POSITIONS), begin, least, 20)
    same(statically(model, model.init_cache(2, POSITIONS), begin, least, 20), wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("vocab", [1, 3, 65, 5000])
def test_the_first_arrival_is_the_draw_of_multinomial(vocab, dtype):
    probs = torch.softmax(torch.randn(50, vocab, dtype=dtype, generator=torch.Generator().manual_seed(vocab)), -1)
    ours, theirs = (torch.Generator().manual_seed(3) for _ in range(2))
    wanted = torch.multinomial(probs, 1, generator=theirs).squeeze(-1)
    assert torch.equal(first_arrival(probs, ours), wanted)
    assert torch.equal(ours.get_state(), theirs.get_state())


class Recorded(TorchDispatchMode):
    """What a CUDA graph is, on the CPU: the calls of one step with their tensors, called again without any Python."""

    def __init__(self, step):
        super().__init__()
        self.calls = []
        with self:
            step()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        assert func is not torch.ops.aten._local_scalar_dense.default, "the step asks for a number"
        found = func(*args, **kwargs)
        self.calls.append((func, args, kwargs, found))
        return found

    def replay(self):
        for func, args, kwargs, was in self.calls:
            found = func(*args, **kwargs)
            pairs = zip(was, found, strict=True) if isinstance(was, (tuple, list)) else [(was, found)]
            aliases = any(each.alias_info is not None for each in func._schema.returns)
            for old, new in [] if aliases else pairs:
                if isinstance(old, torch.Tensor):
                    old.copy_(new)


@every_model
def test_a_step_recorded_at_one_position_replays_at_all(name):
    """Anything that the step knew of its position in Python would be that of the recording."""
    model, begin, most = shaken(name), prompt(2, 5), 40
    sampler = TokenSampler(temperature=0.9, generator=torch.Generator().manual_seed(1))
    wanted = ordinary(model, model.init_cache(2, POSITIONS), begin, sampler, most)
    with torch.inference_mode():
        logits, cache = model.decode_step(model.init_cache(2, POSITIONS), begin)
        decoder = StaticDecoder(model, logits, 44, sampler, first_limit=16)
        for limit in decoder.limits(5, 43):
            decoder.cache.reset()
            decoder.slot.zero_()
            decoder.graphs[limit] = Recorded(lambda limit=limit: decoder._captured(model, limit))
        decoder.generator.manual_seed(1)
        decoder.begin(cache, 5, logits)
        found = []
        while sum(each.tokens.shape[1] for each in found) < most:
            decoder.advance(None, min(decoder.free_slots, most - 1 - (decoder.position - 5)))
            found.append(decoder.collect())
    assert torch.cat([each.tokens for each in found], dim=1).tolist() == wanted[0]


def test_nothing_of_the_text_before_is_left_in_the_memory():
    """NaN in the keys and values of a text would reach the next: a weight of zero times NaN is NaN."""
    model, begin = shaken("gpt"), prompt(1, 30)
    wanted = ordinary(model, model.init_cache(1, POSITIONS), prompt(1, 3, 9), greedy_token, 10)
    statically(model, model.init_cache(1, POSITIONS), begin, greedy_token, 10)
    kept = module._KEPT[model][1]
    for block in kept.cache.blocks:
        block.keys.fill_(torch.nan)
        block.values.fill_(torch.nan)
    same(statically(model, model.init_cache(1, POSITIONS), prompt(1, 3, 9), greedy_token, 10), wanted)
    assert module._KEPT[model][1] is kept


def test_a_decoder_is_kept_while_the_weights_are_where_they_were():
    model, begin = shaken("gpt"), prompt(1, 5)

    def kept():
        statically(model, model.init_cache(1, POSITIONS), begin, greedy_token, 10)
        return module._KEPT[model][1]

    first = kept()
    assert kept() is first
    with torch.no_grad():
        model.token_embedding.weight.mul_(-1)  # in place: a graph reads the new values
    assert kept() is first
    model.float().double()  # the same numbers at other addresses
    assert kept() is not first


def test_two_texts_at_a_time_share_no_buffers():
    model, begins = shaken("gpt"), (prompt(1, 5), prompt(1, 7, 5))
    wanted = [ordinary(model, model.init_cache(1, POSITIONS), each, greedy_token, 40)[0][0] for each in begins]
    streams = []
    for begin in begins:
        with torch.inference_mode():
            logits, cache = model.decode_step(model.init_cache(1, POSITIONS), begin)
        streams.append(static_steps(model, cache, begin, logits, greedy_token, max_tokens=40, capture=False))
    texts = [[], []]
    for some in zip(*streams, strict=True):
        for text, steps in zip(texts, some, strict=True):
            text += steps.tokens[0].tolist()
    assert texts == wanted


def test_a_decoder_does_not_keep_its_model():
    model = shaken("gpt")
    statically(model, model.init_cache(1, POSITIONS), prompt(1, 5), greedy_token, 10)
    alive = weakref.ref(model)
    del model
    gc.collect()
    assert alive() is None


def test_who_does_not_step_statically():
    begin = prompt(1, 5)

    def serves(model, most=10, room=POSITIONS):
        with torch.inference_mode():
            cache = model.decode_step(model.init_cache(1, room), begin).cache
        return can_step_statically(model, cache, most)

    model = shaken("gpt")
    assert serves(model)
    assert serves(model, most=POSITIONS - 4)
    assert not serves(model, most=POSITIONS - 3)  # the error comes from the ordinary step
    assert serves(windowed("gpt", 8, 4), most=1000)
    hook = model.transformer.register_forward_hook(lambda *_: None)
    assert not serves(model)
    hook.remove()
    assert serves(model)
    assert not can_step_statically(torch.nn.Identity(), None, 10)  # knows of no such steps


def test_a_bias_that_must_know_its_position_has_no_static_cache():
    inner = [ExactAttention(bias=RelativePositionBias(2)) for _ in range(2)]
    model = TransformerLanguageModel(VOCAB, [transformer_block(8, 2, inner_attention=each) for each in inner])
    assert model.init_static_cache(1, 8) is None
    with torch.inference_mode():
        logits, cache = model.eval().decode_step(model.init_cache(1, 20), prompt(1, 5))
    assert static_steps(model, cache, prompt(1, 5), logits, greedy_token, max_tokens=5, capture=False) is None
    assert sample_tokens(model, model.init_cache(1, 20), prompt(1, 5), max_tokens=5).tokens.shape == (1, 5)


def test_a_step_that_cannot_be_captured_is_told_once_and_not_tried_again(monkeypatch):
    def fail(*_):
        raise RuntimeError("operation not permitted when stream is capturing\nCUDA kernel errors might ...")

    monkeypatch.setattr(StaticDecoder, "capture", fail)
    model, begin = shaken("gpt"), prompt(1, 5)
    with torch.inference_mode():
        logits, cache = model.decode_step(model.init_cache(1, POSITIONS), begin)
    assert can_step_statically(model, cache, 10)
    with pytest.warns(UserWarning, match=r"could not be captured: operation not permitted when stream is capturing$"):
        assert static_steps(model, cache, begin, logits, greedy_token, max_tokens=10) is None
    assert not can_step_statically(model, cache, 10)


def test_what_is_generated_can_be_trained_on():
    model = shaken("gpt")
    found = statically(model, model.init_cache(1, POSITIONS), prompt(1, 5), greedy_token, 5)
    model(found.tokens).sum().backward()
    assert model.token_embedding.weight.grad is not None


def test_limits_double_and_end_with_the_memory():
    assert [round_up_limit(n, 4) for n in (1, 4, 5, 8, 9, 16, 17)] == [4, 4, 8, 8, 16, 16, 32]
    model = shaken("gpt")
    logits = torch.zeros(1, 1, VOCAB)
    decoder = StaticDecoder(model, logits, 42, greedy_token, first_limit=4)
    assert decoder.capacity == 44
    assert [decoder.limits(position, position) for position in (0, 3, 4, 31, 32, 43)] == [
        *([4], [4], [8], [32], [44], [44])
    ]
    assert decoder.limits(0, 3) == [4]
    assert decoder.limits(0, 4) == [4, 8]
    assert decoder.limits(0, 43) == [4, 8, 16, 32, 44]
    assert StaticDecoder(shaken("lstm"), logits, 42, greedy_token, first_limit=4).limits(0, 43) == [44]


def test_a_position_hides_what_comes_after_it():
    position = DevicePosition(torch.tensor([2]), 5)
    assert position.seen.tolist() == [True, True, True, False, False]
    assert position.score_mask(torch.float32).flatten().tolist() == [0, 0, 0, -torch.inf, -torch.inf]
