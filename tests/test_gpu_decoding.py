"""Decoding on CUDA by captured steps against ordinary steps there: `pytest --noconftest tests/test_gpu_decoding.py`."""

import warnings

import pytest
import torch

from decoding_cases import MODELS, POSITIONS, WINDOWED, ordinary, prompt, rows, shaken, statically, windowed
from quoin.generate import TokenSampler, greedy_search, greedy_token, sample_tokens, stream_tokens
from quoin.generate import static_steps as module
from quoin.models import gpt2_from_config

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
every_model = pytest.mark.parametrize("name", MODELS)
CONFIG = {"vocab_size": 211, "n_positions": 600, "n_embd": 64, "n_layer": 2, "n_head": 4}


@pytest.fixture(autouse=True)
def _no_fallback():
    """A step that could not be captured would decode as ever, and every test would pass."""
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="decoding without a CUDA graph")
        yield


def graphs(model):
    """The lengths for which the model's step was captured."""
    inner = getattr(model, "model", model)
    return sorted(module._KEPT[inner][1].graphs) if inner in module._KEPT else []


def same(found, wanted):
    texts, log_probs, ended = rows(found)
    assert texts == wanted[0]
    assert log_probs == pytest.approx(wanted[1], abs=1e-8)
    assert ended == wanted[2]


@every_model
@pytest.mark.parametrize("batch", [1, 3])
def test_greedy_tokens_are_those_of_ordinary_steps(name, batch):
    model, begin, most = shaken(name).cuda(), prompt(batch, 5).cuda(), 40
    wanted = ordinary(model, model.init_cache(batch, POSITIONS), begin, greedy_token, most)
    for _ in range(2):  # the second time by the graph of the first
        same(greedy_search(model, model.init_cache(batch, POSITIONS), begin, max_tokens=most), wanted)
    assert graphs(model)


@every_model
def test_a_graph_for_each_length(name):
    model, begin = shaken(name).cuda(), prompt(2, 5).cuda()
    wanted = ordinary(model, model.init_cache(2, POSITIONS), begin, greedy_token, 40)
    found = statically(model, model.init_cache(2, POSITIONS), begin, greedy_token, 40, first_limit=8, capture=True)
    same(found, wanted)
    if module._KEPT[model][1].cache.grows:
        assert graphs(model) == [8, 16, 32, 48]
    else:  # a state of constant size has one for all lengths
        assert len(graphs(model)) == 1


@every_model
def test_ends_are_found(name):
    model, begin = shaken(name, 2).cuda(), prompt(3, 4, 2).cuda()
    free = ordinary(model, model.init_cache(3, POSITIONS), begin, greedy_token, 40)[0]
    eos = free[0][20]
    wanted = ordinary(model, model.init_cache(3, POSITIONS), begin, greedy_token, 40, eos)
    found = greedy_search(model, model.init_cache(3, POSITIONS), begin, max_tokens=40, eos_token_id=eos)
    same(found, wanted)
    assert found.tokens.shape[1] == max(map(len, wanted[0]))


@pytest.mark.parametrize("name", WINDOWED)
@pytest.mark.parametrize(("window", "stride", "length"), [(8, 4, 3), (12, 5, 20)])
def test_windows_slide(name, window, stride, length):
    model, begin = windowed(name, window, stride).cuda(), prompt(2, length, 3).cuda()
    wanted = ordinary(model, model.init_cache(2), begin, greedy_token, 45)
    same(greedy_search(model, model.init_cache(2), begin, max_tokens=45), wanted)
    assert graphs(model)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 9}, {"top_p": 0.8}])
def test_samples_are_a_function_of_the_seed_and_go_on(options):
    model, begin = shaken("gpt").cuda(), prompt(3, 5).cuda()
    generator = torch.Generator("cuda")

    def sampled(seed=None):
        if seed is not None:
            generator.manual_seed(seed)
        cache = model.init_cache(3, POSITIONS)
        return sample_tokens(model, cache, begin, max_tokens=30, generator=generator, **options).tokens.tolist()

    first, then = sampled(7), sampled()
    assert first != then
    assert [sampled(7), sampled()] == [first, then]
    assert sampled(8) != first
    assert graphs(model)


def test_samples_have_the_distribution_of_the_model():
    """Of the second token given the first, over many sequences at a time."""
    model, rows_ = shaken("gpt").cuda().float(), 20_000
    begin = prompt(1, 4).cuda().expand(rows_, -1)
    sampler = {"temperature": 0.8, "top_k": 6}
    found = sample_tokens(
        model,
        model.init_cache(rows_, 8),
        begin,
        max_tokens=2,
        generator=torch.Generator("cuda").manual_seed(0),
        **sampler,
    ).tokens
    assert graphs(model)
    first = int(found[:, 0].mode().values)
    after = found[found[:, 0] == first, 1]
    with torch.no_grad():
        logits = model(torch.cat([begin[:1], torch.tensor([[first]], device="cuda")], dim=1))[0, -1]
    probs = TokenSampler(**sampler).probs(logits)
    seen = torch.bincount(after, minlength=len(probs)) / len(after)
    # Six deviations: less than once in a million by chance for all tokens together.
    assert bool(((seen - probs).abs() <= 6 * (probs * (1 - probs) / len(after)).sqrt() + 1e-9).all())


def test_a_way_to_choose_of_ones_own_is_called_on_the_logits_of_the_graph():
    model, begin = shaken("gpt").cuda(), prompt(2, 5).cuda()
    least = lambda logits: logits.argmin(dim=-1)  # noqa: E731
    wanted = ordinary(model, model.init_cache(2, POSITIONS), begin, least, 20)[0]
    steps = list(stream_tokens(model, model.init_cache(2, POSITIONS), begin, least, max_tokens=20))
    assert torch.stack([step.tokens for step in steps], dim=1).tolist() == wanted


def test_weights_may_change_in_place_and_move():
    model, begin = shaken("gpt").cuda(), prompt(1, 5).cuda()

    def both():
        wanted = ordinary(model, model.init_cache(1, POSITIONS), begin, greedy_token, 30)
        same(greedy_search(model, model.init_cache(1, POSITIONS), begin, max_tokens=30), wanted)
        return wanted[0]

    first = both()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(-1.3)
    assert both() != first
    model.cpu()
    torch.empty(1 << 20, device="cuda").fill_(torch.nan)  # where they were
    model.cuda()
    both()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_half_precision_is_near_the_whole_sequence_at_once(dtype):
    """The logits that choose each token, against those of the whole text at once in float64."""
    torch.manual_seed(0)
    model = gpt2_from_config(CONFIG).cuda().eval()
    begin = torch.randint(211, (2, 20), device="cuda")
    low = gpt2_from_config(CONFIG).cuda().to(dtype).eval()
    low.load_state_dict(model.state_dict())
    found = greedy_search(low, low.init_cache(2, 600), begin, max_tokens=560)  # crosses 256 and 512
    assert graphs(low) == [256, 512, 768]
    with torch.no_grad():
        whole = model.double()(torch.cat([begin, found.tokens[:, :-1]], dim=1))[:, 19:].log_softmax(-1)
    wanted = whole.gather(-1, found.tokens.unsqueeze(-1)).squeeze(-1).sum(dim=1)
    bound = {torch.bfloat16: 3e-2, torch.float16: 4e-3, torch.float32: 1e-5}[dtype]
    assert ((found.log_probs.double() - wanted).abs() / wanted.abs()).max() < bound


def test_hooks_are_called_and_autocast_is_kept():
    model, begin, calls = shaken("gpt").cuda().float(), prompt(1, 5).cuda(), []
    hook = model.transformer.blocks[0].attention.out_proj.register_forward_hook(lambda *_: calls.append(1))
    greedy_search(model, model.init_cache(1, POSITIONS), begin, max_tokens=10)
    hook.remove()
    assert len(calls) == 10
    with torch.autocast("cuda", torch.bfloat16):
        assert greedy_search(model, model.init_cache(1, POSITIONS), begin, max_tokens=10).tokens.shape == (1, 10)
    assert graphs(model) == []
