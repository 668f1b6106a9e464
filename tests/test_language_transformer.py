"""Transformers over tokens: causal, equal token by token and all at once, tied, and as the classes they are made of
say."""

import math
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quoin.errors import UserError
from quoin.layers import (
    ALiBi,
    ExactAttention,
    LinearAttention,
    PerformerAttention,
    PostNorm,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    decoder_block,
    transformer_block,
)
from quoin.models import (
    GPT,
    CausalLM,
    DecoderCache,
    DecodingCache,
    Transformer,
    TransformerCache,
    TransformerLanguageModel,
    gpt2_from_config,
)
from quoin.recipes import transformer_lm
from seeds import seeded

WIDTH, HEADS, TOKENS = 8, 2, 11


pytestmark = pytest.mark.usefixtures("one_thread")  # tensors here are too small to share out


def made(blocks, generator, **options) -> TransformerLanguageModel:
    return TransformerLanguageModel(TOKENS, blocks, generator=generator, **options)


def performer(generator):
    return lambda: PerformerAttention(WIDTH // HEADS, 16, generator=generator)


MODELS = {
    "gpt": lambda g: GPT(TOKENS, WIDTH, HEADS, 2, 16, generator=g),
    "gpt, linear": lambda g: GPT(TOKENS, WIDTH, HEADS, 2, 16, make_attention=LinearAttention, generator=g),
    "gpt, performer": lambda g: GPT(TOKENS, WIDTH, HEADS, 2, 16, make_attention=performer(g), generator=g),
    "rotary": lambda g: made(
        [transformer_block(WIDTH, HEADS, rotary=RotaryEmbedding(WIDTH // HEADS)) for _ in range(2)], g
    ),
    "alibi": lambda g: made(
        [transformer_block(WIDTH, HEADS, inner_attention=ExactAttention(bias=ALiBi(HEADS))) for _ in range(2)], g
    ),
    "post-norm": lambda g: made(
        [transformer_block(WIDTH, HEADS, connection=PostNorm)],
        g,
        position_embedding=SinusoidalPositionalEncoding(WIDTH),
    ),
    "untied": lambda g: made(
        [transformer_block(WIDTH, HEADS)],
        g,
        position_embedding=SinusoidalPositionalEncoding(WIDTH),
        tie_embeddings=False,
    ),
}
every_model = pytest.mark.parametrize("name", MODELS)


def shaken(name: str, seed: int) -> TransformerLanguageModel:
    """In float64, every weight drawn anew: the small ones of the start would let every output be nearly the same."""
    generator = seeded(seed)
    model = MODELS[name](generator).double().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5, generator=generator)
    return model


@every_model
@settings(deadline=None, max_examples=8)
@given(pieces=st.lists(st.integers(1, 4), min_size=1, max_size=4), seed=st.integers(0, 2**32))
def test_token_by_token_is_all_at_once(name, pieces, seed):
    model, n = shaken(name, seed), sum(pieces)
    assert isinstance(model, CausalLM)
    tokens = torch.randint(TOKENS, (3, n), generator=seeded(seed))
    rows = torch.tensor([1, 1, 0, 2])
    with torch.no_grad():
        whole, found = model(tokens), []
        state = model.init_cache(3, n)
        assert isinstance(state, DecodingCache)
        for piece in tokens.split(pieces, dim=1):
            branch = model.decode_step(state.select(rows), piece[rows]).logits  # sequences doubled and reordered
            logits, state = model.decode_step(state, piece)
            assert isinstance(state, TransformerCache)
            torch.testing.assert_close(branch, logits[rows], rtol=0, atol=1e-10)
            found.append(logits)
    assert state.seq_len == n
    torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=0, atol=1e-9)


@every_model
def test_what_comes_later_changes_nothing(name):
    model = shaken(name, 1)
    tokens = torch.randint(TOKENS, (2, 12), generator=seeded(0))
    changed = tokens.clone()
    changed[:, 7:] = (changed[:, 7:] + 1) % TOKENS
    before, after = model(tokens), model(changed)
    torch.testing.assert_close(before[:, :7], after[:, :7], rtol=0, atol=1e-12)
    assert (before[:, 7:] - after[:, 7:]).abs().amin(dim=-1).max() > 1e-3
    gradient = torch.autograd.grad(before[:, 4].sum(), model.token_embedding.weight)[0]
    assert gradient.isfinite().all()


@every_model
def test_the_order_is_seen(name):
    """Two words exchanged in the beginning change the distribution after them: a model without positions would not
    tell."""
    model = shaken(name, 2)
    tokens = torch.tensor([[3, 5, 7, 7]])
    assert (model(tokens)[:, -1] - model(tokens[:, [1, 0, 2, 3]])[:, -1]).abs().max() > 1e-6


def test_gpt_is_what_it_says():
    generator = seeded(0)
    model = GPT(TOKENS, WIDTH, HEADS, 3, 16, generator=generator).eval()
    tokens = torch.randint(TOKENS, (2, 5), generator=generator)
    x = model.token_embedding.weight[tokens] + model.position_embedding.weight[:5]  # pyright: ignore[reportOptionalMemberAccess, reportAttributeAccessIssue]
    for block in model.transformer.blocks:
        x = x + block.attention(block.attention_connection.norm(x), causal=True)
        x = x + block.feed_forward(block.feed_forward_connection.norm(x))
    torch.testing.assert_close(model(tokens), model.transformer.norm(x) @ model.token_embedding.weight.T)
    # 4 w² + 4 w for attention, 8 w² + 5 w for the perceptron, 4 w for two norms; codes, positions and the last norm
    assert (
        sum(each.numel() for each in model.parameters()) == 3 * (12 * WIDTH**2 + 13 * WIDTH) + (TOKENS + 16 + 2) * WIDTH
    )


def test_weights_start_small_and_by_depth():
    layers = 8
    model = GPT(50, 64, 4, layers, 16, generator=seeded(0))
    weights = dict(model.transformer.blocks[3].named_parameters())
    assert weights["attention.in_proj.linear.weight"].std().item() == pytest.approx(0.02, rel=0.05)
    for last in ("attention.out_proj", "feed_forward.down_proj"):
        assert weights[f"{last}.weight"].std().item() == pytest.approx(0.02 / math.sqrt(2 * layers), rel=0.05)
        assert (weights[f"{last}.bias"] == 0).all()
    # almost nothing is known at the start, so every token is about as likely
    loss = nn.functional.cross_entropy(
        model(torch.randint(50, (8, 16), generator=seeded(1))).flatten(0, 1), torch.zeros(128).long()
    )
    assert loss.item() == pytest.approx(math.log(50), rel=0.05)
    again = GPT(50, 64, 4, layers, 16, generator=seeded(0))
    assert all(torch.equal(a, b) for a, b in zip(model.parameters(), again.parameters(), strict=True))


def test_the_encoder_decoder_decodes_as_it_learns():
    generator = seeded(3)
    encoder = [transformer_block(WIDTH, HEADS, generator=generator) for _ in range(2)]
    decoder = [decoder_block(WIDTH, HEADS, generator=generator) for _ in range(2)]
    model = Transformer(7, TOKENS, encoder, decoder, generator=generator).double().eval()
    source, target = torch.randint(7, (3, 6), generator=generator), torch.randint(TOKENS, (3, 5), generator=generator)
    lengths = torch.tensor([6, 2, 4])
    with torch.no_grad():
        whole = model(source, target, source_lengths=lengths)
        state, found = model.init_cache(model.encode(source, lengths), 5), []
        for token in target.split(1, dim=1):
            logits, state = model.decode_step(state, token)
            assert isinstance(state, DecoderCache)
            found.append(logits)
        torch.testing.assert_close(torch.cat(found, dim=1), whole)
        alone = model(source[1:2, :2], target[1:2])  # padding is as if it were not there
        torch.testing.assert_close(alone, whole[1:2])
        padded = torch.cat([source, torch.full((3, 2), 6)], dim=1)
        torch.testing.assert_close(model(padded, target, source_lengths=lengths), whole)
        assert (model(padded, target) - whole).abs().max() > 1e-3  # where it is not told what is padding
        target[:, 3:] = 0
        torch.testing.assert_close(model(source, target, source_lengths=lengths)[:, :3], whole[:, :3])
        rows = torch.tensor([2, 2, 0])
        again = model.decode_step(
            model.init_cache(model.encode(source, lengths), 5).select(rows), target[rows, :1]
        ).logits
        torch.testing.assert_close(again, whole[rows, :1])


def test_a_model_learns_what_follows():
    """The next token is the one before it plus one: a small GPT gets it in a few dozen updates."""
    model = GPT(8, 16, 2, 1, 8, generator=seeded(0))
    optimizer = torch.optim.AdamW(model.parameters(), 0.02)
    for step in range(60):
        tokens = (torch.randint(8, (16, 1), generator=seeded(step)) + torch.arange(9)) % 8
        loss = nn.functional.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.05


def test_mistakes_are_told():
    model = GPT(TOKENS, WIDTH, HEADS, 1, 16, generator=seeded(0))
    with pytest.raises(UserError, match="tokens from 0 to 10, got 3 to 11"):
        model(torch.tensor([[3, 11]]))
    with pytest.raises(UserError, match="tokens from 0 to 10, got -1 to 3"):
        model(torch.tensor([[3, -1]]))
    with pytest.raises(UserError, match=r"token ids \(batch_size, positions\)"):
        model(torch.zeros(2, 3))
    with pytest.raises(UserError, match=r"token ids \(batch_size, positions\)"):
        model(torch.zeros(3, dtype=torch.long))
    with pytest.raises(UserError, match="among the 16 that were learned"):
        model(torch.zeros(1, 17, dtype=torch.long))
    with pytest.raises(UserError, match="at most 16 tokens"):
        model.init_cache(1, 17)
    with pytest.raises(UserError, match="num_heads that divide embed_dim 8, got 3"):
        GPT(TOKENS, WIDTH, 3, 1, 16)
    with pytest.raises(UserError, match="at least one block"):
        GPT(TOKENS, WIDTH, HEADS, 0, 16)
    with pytest.raises(UserError, match="of 1 or more, got 0 and 8"):
        GPT(0, WIDTH, HEADS, 1, 16)
    with torch.no_grad(), pytest.raises(UserError, match="at most 2 positions"):
        model.decode_step(model.init_cache(1, 2), torch.zeros(1, 3, dtype=torch.long))
    with pytest.raises(UserError, match="of the encoder's embed_dim 8, got 4"):
        Transformer(5, 5, [transformer_block(8, 2)], [decoder_block(4, 2)])


def test_the_size_gpt2_is_gpt2():
    """OpenAI's smallest has 124,439,808 parameters; the model its pretrained weights go into has the same ones."""
    data_info: Any = SimpleNamespace(vocab_size=50257)
    options = transformer_lm.Options(size="gpt2")
    assert (options.context_length, options.position_embedding) == (1024, "learned")
    with torch.device("meta"):
        model, theirs = transformer_lm.model(options, data_info), gpt2_from_config({})
    assert sum(each.numel() for each in model.parameters()) == 124_439_808
    assert {name: each.shape for name, each in model.state_dict().items()} == {
        name: each.shape for name, each in theirs.state_dict().items()
    }


def test_a_small_gpt2_computes_what_the_pretrained_one_does():
    sizes: dict[str, Any] = {"embed_dim": 16, "num_heads": 2, "num_layers": 2, "context_length": 8}
    data_info: Any = SimpleNamespace(vocab_size=TOKENS)
    model = transformer_lm.model(transformer_lm.Options(size="gpt2", **sizes), data_info).eval()
    theirs = gpt2_from_config({"vocab_size": TOKENS, "n_positions": 8, "n_embd": 16, "n_layer": 2, "n_head": 2}).eval()
    theirs.load_state_dict(model.state_dict())
    tokens = torch.randint(TOKENS, (3, 8), generator=seeded(0))
    torch.testing.assert_close(model(tokens), theirs(tokens))
    other = transformer_lm.model(transformer_lm.Options(position_embedding="learned", **sizes), data_info).eval()
    other.load_state_dict(model.state_dict())
    assert not torch.equal(other(tokens), theirs(tokens))  # whose GELU is the exact one


def test_options_that_are_given_stay_as_they_are():
    options = transformer_lm.Options(size="gpt2", position_embedding="rotary", context_length=32)
    assert (options.position_embedding, options.context_length) == ("rotary", 32)
    options = transformer_lm.Options()
    assert (options.position_embedding, options.context_length) == ("rotary", 128)
    with pytest.raises(UserError, match="did you mean 'rotary'"):
        transformer_lm.Options(position_embedding="rotari")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="--context-length"):
        transformer_lm.Options(context_length=0)


@pytest.mark.parametrize("tied", [True, False])
def test_given_the_next_tokens_it_gives_the_sum_of_their_losses(tied):
    blocks = [transformer_block(WIDTH, HEADS, generator=seeded(0))]
    model = TransformerLanguageModel(TOKENS, blocks, tie_embeddings=tied, generator=seeded(1)).double()
    tokens = torch.randint(TOKENS, (3, 6), generator=seeded(2))
    logits = model(tokens[:, :-1])
    expected = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="sum")
    torch.testing.assert_close(model(tokens[:, :-1], tokens[:, 1:]), expected)
