"""Models of every kind that decodes by static steps, and texts from them by ordinary steps: what the static ones must
give, on the CPU and on a GPU."""

import torch
from torch import nn

from quoin.generate.decoding import Generated, TokenStep
from quoin.generate.static_steps import static_steps
from quoin.layers import (
    ALiBi,
    ExactAttention,
    FeedForward,
    LinearAttention,
    MultiHeadAttention,
    PerformerAttention,
    RotaryEmbedding,
    SinusoidalPositionalEncoding,
    TransformerBlock,
    transformer_block,
)
from quoin.models import GPT, RecurrentLanguageModel, SlidingWindowModel, TransformerLanguageModel, llama_from_config

VOCAB, WIDTH, HEADS, POSITIONS = 23, 16, 4, 48
LLAMA = {
    "vocab_size": VOCAB,
    "hidden_size": WIDTH,
    "intermediate_size": 40,
    "num_hidden_layers": 2,
    "num_attention_heads": HEADS,
    "num_key_value_heads": 2,
}


def _blocks(make, **options):
    return TransformerLanguageModel(VOCAB, [make() for _ in range(2)], **options)


def _grouped_with_bias():
    inner = ExactAttention(bias=ALiBi(HEADS))
    return TransformerBlock(MultiHeadAttention(WIDTH, HEADS, num_kv_heads=2, inner_attention=inner), FeedForward(WIDTH))


def _performer():
    return PerformerAttention(WIDTH // HEADS, 16, generator=torch.Generator().manual_seed(0))


MODELS = {
    "gpt": lambda: GPT(VOCAB, WIDTH, HEADS, 2, POSITIONS),
    "gpt, linear": lambda: GPT(VOCAB, WIDTH, HEADS, 2, POSITIONS, make_attention=LinearAttention),
    "gpt, performer": lambda: GPT(VOCAB, WIDTH, HEADS, 2, POSITIONS, make_attention=_performer),
    "llama, grouped": lambda: llama_from_config(LLAMA),
    "rotary": lambda: _blocks(lambda: transformer_block(WIDTH, HEADS, rotary=RotaryEmbedding(WIDTH // HEADS))),
    "rotary, linear": lambda: _blocks(
        lambda: transformer_block(
            WIDTH, HEADS, rotary=RotaryEmbedding(WIDTH // HEADS), inner_attention=LinearAttention()
        )
    ),
    "alibi": lambda: _blocks(
        lambda: transformer_block(WIDTH, HEADS, inner_attention=ExactAttention(bias=ALiBi(HEADS)))
    ),
    "alibi, grouped": lambda: _blocks(_grouped_with_bias),
    "sinusoidal": lambda: _blocks(
        lambda: transformer_block(WIDTH, HEADS), position_embedding=SinusoidalPositionalEncoding(WIDTH)
    ),
    "lstm": lambda: RecurrentLanguageModel(nn.LSTM, VOCAB, WIDTH, WIDTH, num_layers=2),
    "gru": lambda: RecurrentLanguageModel(nn.GRU, VOCAB, WIDTH, WIDTH),
}
WINDOWED = ("gpt", "gpt, linear", "rotary", "rotary, linear", "alibi")


def shaken(name, seed=0):
    """Matrices drawn anew: with the small ones of the start every output would be nearly the same."""
    model, generator = MODELS[name](), torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for own, parameter in model.named_parameters():
            if parameter.ndim > 1:
                std = 0.15 if own == "token_embedding.weight" else 0.5
                parameter.copy_(std * torch.randn(parameter.shape, generator=generator))
            elif own.endswith("bias"):
                parameter.copy_(0.1 * torch.randn(parameter.shape, generator=generator))
    return model.double().eval()


def windowed(name, window, stride, seed=0):
    return SlidingWindowModel(shaken(name, seed), window, stride=stride)


def prompt(batch, length, seed=0):
    return torch.randint(VOCAB, (batch, length), generator=torch.Generator().manual_seed(100 + seed))


def ordinary(model, cache, begin, choose, max_tokens, eos_token_id=None):
    """A second implementation of decoding, token by token: each sequence as its own list."""
    texts, log_probs = [[] for _ in begin], [0.0] * len(begin)
    over, new = [False] * len(begin), begin
    with torch.no_grad():
        for _ in range(max_tokens):
            logits, cache = model.decode_step(cache, new)
            chosen = choose(logits[:, -1]).tolist()
            for row, token in enumerate(chosen):
                if over[row]:
                    chosen[row] = eos_token_id
                    continue
                texts[row].append(token)
                log_probs[row] += float(logits[row, -1].log_softmax(-1)[token])
                over[row] = token == eos_token_id
            if all(over):
                break
            new = torch.tensor(chosen, device=begin.device).unsqueeze(-1)
    return texts, log_probs, over


def rows(found):
    """What was generated, in the form of `ordinary`."""
    texts = [tokens[:length] for tokens, length in zip(found.tokens.tolist(), found.lengths.tolist(), strict=True)]
    return texts, found.log_probs.tolist(), found.ended.tolist()


def statically(model, cache, begin, choose, max_tokens, eos_token_id=None, first_limit=8, capture=False):
    """Static steps, taken as they are written unless `capture`d, put together."""
    with torch.inference_mode():
        logits, cache = model.decode_step(cache, begin)
    steps = static_steps(
        model,
        cache,
        begin,
        logits,
        choose,
        max_tokens=max_tokens,
        eos_token_id=eos_token_id,
        capture=capture,
        first_limit=first_limit,
    )
    assert steps is not None
    tokens, log_probs, ended = (torch.cat(each, dim=1) for each in zip(*steps, strict=True))
    lengths = 1 + (~ended[:, :-1]).sum(dim=1)
    return Generated(tokens, lengths, log_probs.sum(dim=1), ended[:, -1])


def streamed(steps: list[TokenStep]):
    return torch.stack([step.tokens for step in steps], dim=1)
