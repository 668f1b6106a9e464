"""GPT-2 and Llama as Hugging Face keeps them: the same logits and the same greedy text as `transformers` with the same
weights.

The models are small and random; where `transformers` is missing, a forward pass written from the layout's names stands
in for GPT-2.
"""

import json
import math
import os

import pytest
import safetensors.torch
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch.nn import functional

from quoin import generate, layers, models
from quoin.errors import UserError
from seeds import seeded

os.environ.setdefault("HF_HUB_OFFLINE", "1")

GPT2 = {"model_type": "gpt2", "vocab_size": 41, "n_positions": 24, "n_embd": 16, "n_layer": 2, "n_head": 4}
LLAMA = {
    "model_type": "llama",
    "vocab_size": 41,
    "hidden_size": 16,
    "intermediate_size": 36,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def tokens(rows=2, length=9):
    return torch.randint(41, (rows, length), generator=seeded(5))


def one_line(mistake):
    assert len(str(mistake.value).splitlines()) == 1
    return str(mistake.value)


def gpt2_layout(config=GPT2, scale=0.3):
    """Random weights under the names and shapes of the layout, as its documentation gives them."""
    width, hidden = config["n_embd"], config.get("n_inner") or 4 * config["n_embd"]
    shapes = {"wte.weight": (config["vocab_size"], width), "wpe.weight": (config["n_positions"], width)}
    for layer in range(config["n_layer"]):
        maps = {"attn.c_attn": (width, 3 * width), "attn.c_proj": (width, width)}
        maps |= {"mlp.c_fc": (width, hidden), "mlp.c_proj": (hidden, width)}
        for name, shape in maps.items():
            shapes |= {f"h.{layer}.{name}.weight": shape, f"h.{layer}.{name}.bias": shape[1:]}
        for name in ("ln_1", "ln_2"):
            shapes |= {f"h.{layer}.{name}.weight": (width,), f"h.{layer}.{name}.bias": (width,)}
    shapes |= {"ln_f.weight": (width,), "ln_f.bias": (width,)}
    generator = seeded()
    return {name: scale * torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def gpt2_forward(x, state, heads=4):
    """The forward pass of GPT-2, from the names of its layout."""

    def norm(x, name):
        return functional.layer_norm(x, x.shape[-1:], state[f"{name}.weight"], state[f"{name}.bias"])

    def conv(x, name):
        return x @ state[f"{name}.weight"] + state[f"{name}.bias"]

    n, x = x.shape[1], state["wte.weight"][x] + state["wpe.weight"][: x.shape[1]]
    hidden = torch.ones(n, n).triu(1).bool()
    for layer in range(2):
        joint = conv(norm(x, f"h.{layer}.ln_1"), f"h.{layer}.attn.c_attn")
        q, k, v = (part.unflatten(-1, (heads, -1)).transpose(1, 2) for part in joint.chunk(3, -1))
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        x = x + conv((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), f"h.{layer}.attn.c_proj")
        inner = conv(norm(x, f"h.{layer}.ln_2"), f"h.{layer}.mlp.c_fc")
        inner = 0.5 * inner * (1 + torch.tanh(math.sqrt(2 / math.pi) * (inner + 0.044715 * inner**3)))
        x = x + conv(inner, f"h.{layer}.mlp.c_proj")
    return norm(x, "ln_f") @ state["wte.weight"].T


# ---- beside transformers ----------------------------------------------------------------------------------------


def theirs(family, config, **more):
    """A random model of `transformers`, spread wide enough that the smallest slip shows."""
    transformers = pytest.importorskip("transformers")
    ends = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": 0}
    kinds = {
        "gpt2": (transformers.GPT2Config, transformers.GPT2LMHeadModel),
        "llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM),
    }
    of, model = kinds[family]
    net = model(of(**{name: value for name, value in config.items() if name != "model_type"} | ends | more)).eval()
    generator = seeded(1)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    return net


VARIANTS = [
    ("gpt2", GPT2, {}),
    ("gpt2", GPT2, {"tie_word_embeddings": False, "n_inner": 24, "layer_norm_epsilon": 1e-3}),
    ("gpt2", GPT2, {"activation_function": "gelu", "scale_attn_by_inverse_layer_idx": True}),
    ("gpt2", GPT2, {"scale_attn_weights": False, "activation_function": "relu"}),
    ("llama", LLAMA, {}),
    ("llama", LLAMA, {"num_key_value_heads": 1, "rms_norm_eps": 1e-3}),
    ("llama", LLAMA, {"num_key_value_heads": 4, "tie_word_embeddings": True}),
    ("llama", LLAMA, {"rope_parameters": {"rope_type": "default", "rope_theta": 100.0}}),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("family", "config", "more"), VARIANTS)
def test_a_saved_folder_gives_the_same_logits_and_the_same_greedy_text(family, config, more, tmp_path):
    peer = theirs(family, config, **more)
    peer.save_pretrained(tmp_path)
    ours = {"gpt2": models.gpt2_from_pretrained, "llama": models.llama_from_pretrained}[family](tmp_path)
    x = tokens()
    with torch.no_grad():
        torch.testing.assert_close(ours(x), peer(x).logits, atol=1e-4, rtol=1e-4)
    said = generate.greedy_search(ours, ours.init_cache(len(x), 21), x, max_tokens=12).tokens
    expected = peer.generate(x, attention_mask=torch.ones_like(x), max_new_tokens=12, do_sample=False)
    assert said.equal(expected[:, x.shape[1] :])


@pytest.mark.filterwarnings("ignore")
def test_shards_and_bare_models_load_as_well(tmp_path):
    peer = theirs("gpt2", GPT2)
    peer.save_pretrained(tmp_path / "shards", max_shard_size="4KB")
    assert len(list((tmp_path / "shards").glob("*.safetensors"))) > 1
    with torch.no_grad():
        expected = peer(tokens()).logits
        torch.testing.assert_close(
            models.gpt2_from_pretrained(tmp_path / "shards")(tokens()), expected, atol=1e-4, rtol=1e-4
        )
        bare = models.gpt2_from_config(GPT2)
        models.load_gpt2_weights(bare, peer.transformer.state_dict())
        torch.testing.assert_close(bare(tokens()), expected, atol=1e-4, rtol=1e-4)
        llama = theirs("llama", LLAMA, tie_word_embeddings=True)
        bare = models.llama_from_config(LLAMA | {"tie_word_embeddings": True})
        models.load_llama_weights(bare, llama.model.state_dict())
        torch.testing.assert_close(bare(tokens()), llama(tokens()).logits, atol=1e-4, rtol=1e-4)


# ---- without it -------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_gpt2_as_its_layout_says():
    state = gpt2_layout()
    model = models.gpt2_from_config(GPT2)
    models.load_gpt2_weights(model, state)
    torch.testing.assert_close(model(tokens()), gpt2_forward(tokens(), state), atol=1e-4, rtol=1e-4)


@torch.no_grad()
def test_our_gpt_takes_the_weights_too_from_a_file_with_masks_and_prefix(tmp_path):
    state = gpt2_layout()
    saved = {f"transformer.{name}": tensor for name, tensor in state.items()} | {
        "lm_head.weight": state["wte.weight"].clone()
    }
    for layer in range(2):  # as files of old have them
        saved |= {f"transformer.h.{layer}.attn.bias": torch.ones(1, 1, 24, 24).tril()}
        saved |= {f"transformer.h.{layer}.attn.masked_bias": torch.tensor(-1e4)}
    safetensors.torch.save_file(saved, tmp_path / "old.safetensors")
    model = models.GPT(41, 16, 4, 2, 24)
    models.load_gpt2_weights(model, tmp_path / "old.safetensors")
    torch.testing.assert_close(model(tokens()), gpt2_forward(tokens(), state), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            lambda state: {name: tensor for name, tensor in state.items() if not name.startswith("h.1.")},
            "expected a tensor 'h.1.",
        ),
        (lambda state: state | {"h.2.ln_1.weight": torch.ones(16)}, "beyond the model's, got 'h.2.ln_1.weight'"),
        (
            lambda state: {name: tensor for name, tensor in state.items() if name != "ln_f.bias"},
            "expected a tensor 'ln_f.bias'",
        ),
        (lambda state: state | {"score.weight": torch.ones(1)}, "got 'score.weight'"),
        (lambda state: state | {"wpe.weight": torch.ones(12, 16)}, r"'wpe.weight' of shape \(24, 16\), got \(12, 16\)"),
        (
            lambda state: state | {"h.0.mlp.c_fc.weight": torch.ones(64, 16)},
            r"c_fc.weight' to make shape \(64, 16\), got \(64, 16\)",
        ),
        (lambda state: state | {"lm_head.weight": torch.ones(41, 16)}, "build it with tie_embeddings=False"),
        (lambda state: state | {"wte.weight": [1.0]}, "got list"),
    ],
)
def test_weights_of_another_model_are_refused_and_change_nothing(change, told):
    model = models.gpt2_from_config(GPT2)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(UserError, match=told) as mistake:
        models.load_gpt2_weights(model, change(gpt2_layout()))
    one_line(mistake)
    assert all(tensor.equal(before[name]) for name, tensor in model.state_dict().items())


def test_llama_pieces_that_do_not_fit_and_a_model_of_other_parts():
    model = models.llama_from_config(LLAMA)
    wanted = {
        "embed_tokens.weight": torch.ones(41, 16),
        "norm.weight": torch.ones(16),
        "lm_head.weight": torch.ones(41, 16),
    }
    for layer in range(2):
        shapes = {
            "self_attn.q_proj": (16, 16),
            "self_attn.k_proj": (16, 16),
            "self_attn.v_proj": (8, 16),
            "self_attn.o_proj": (16, 16),
        }
        shapes |= {"mlp.gate_proj": (36, 16), "mlp.up_proj": (36, 16), "mlp.down_proj": (16, 36)}
        shapes |= {"input_layernorm": (16,), "post_attention_layernorm": (16,)}
        wanted |= {f"layers.{layer}.{name}.weight": torch.ones(shape) for name, shape in shapes.items()}
    with pytest.raises(
        UserError, match=r"q_proj.weight' and 'layers.0.self_attn.k_proj.weight'.* to make shape \(32, 16\)"
    ) as mistake:
        models.load_llama_weights(model, wanted)
    one_line(mistake)
    with pytest.raises(UserError, match="a model of this layout's modules"):
        models.load_llama_weights(models.GPT(41, 16, 4, 2, 24), wanted)


@pytest.mark.parametrize(
    ("build", "config", "told"),
    [
        (models.gpt2_from_config, LLAMA, "config of a gpt2 model, got model_type 'llama'"),
        (models.gpt2_from_config, GPT2 | {"n_embd": 0}, "whole number from 1 on as n_embd"),
        (models.gpt2_from_config, GPT2 | {"n_layer": "two"}, "as n_layer .* got 'two'"),
        (models.gpt2_from_config, GPT2 | {"n_head": 3}, "num_heads that divide embed_dim 16, got 3"),
        (models.gpt2_from_config, GPT2 | {"activation_function": "gelo"}, "did you mean 'gelu'"),
        (models.gpt2_from_config, GPT2 | {"add_cross_attention": True}, "expected false as add_cross_attention"),
        (models.gpt2_from_config, GPT2 | {"layer_norm_epsilon": -1}, "a positive number as layer_norm_epsilon"),
        (models.gpt2_from_config, GPT2 | {"tie_word_embeddings": "yes"}, "true or false as tie_word_embeddings"),
        (models.llama_from_config, LLAMA | {"num_attention_heads": 16}, "even head_dim, got 16"),
        (models.llama_from_config, LLAMA | {"num_key_value_heads": 3}, "num_kv_heads that divide num_heads 4"),
        (models.llama_from_config, LLAMA | {"head_dim": 8}, r"expected head_dim \d+, embed_dim by num_heads, got 8"),
        (models.llama_from_config, LLAMA | {"attention_bias": True}, "without biases"),
        (models.llama_from_config, LLAMA | {"rope_scaling": {"rope_type": "llama3", "factor": 8.0}}, "kind 'llama3'"),
        (models.llama_from_config, LLAMA | {"rope_scaling": 3}, "kind 3"),
        (models.llama_from_config, LLAMA | {"rope_theta": 0}, "a positive number as rope_theta"),
    ],
)
def test_a_config_that_cannot_be_built(build, config, told):
    with pytest.raises(UserError, match=told) as mistake:
        build(config)
    one_line(mistake)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({}, "a JSON file at .*No such file"),
        ({"config.json": "{"}, "expected JSON in"),
        ({"config.json": "[1]"}, "a JSON object in"),
        ({"config.json": json.dumps(GPT2)}, "a safetensors file at .*No such file"),
        ({"config.json": json.dumps(GPT2), "model.safetensors": "PK"}, "does not read as such"),
        (
            {"config.json": json.dumps(GPT2), "model.safetensors.index.json": '{"weight_map": {"a": "../b"}}'},
            "a weight_map of file names",
        ),
        ({"config.json": json.dumps(GPT2), "model.safetensors.index.json": "{}"}, "a weight_map of file names"),
    ],
)
def test_a_folder_that_cannot_be_opened(tmp_path, files, told):
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(UserError, match=told) as mistake:
        models.gpt2_from_pretrained(tmp_path)
    one_line(mistake)


# ---- the parts --------------------------------------------------------------------------------------------------

DTYPES = st.sampled_from([torch.float32, torch.float64])


def agree(fast, slow, inputs, weights):
    """Equal values, and equal gradients of one random weighing of the outputs."""
    weighing = torch.randn(slow.shape, generator=seeded(2), dtype=slow.dtype)
    grads = [
        torch.autograd.grad((made * weighing).sum(), [*inputs, *weights], retain_graph=True) for made in (fast, slow)
    ]
    torch.testing.assert_close(fast, slow)
    for ours, expected in zip(*grads, strict=True):
        torch.testing.assert_close(ours, expected)


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(1, 5), st.integers(1, 6), st.integers(1, 9), DTYPES)
def test_gated_feed_forward_is_its_definition(batch, positions, width, hidden, dtype):
    block = layers.GatedFeedForward(width, hidden, generator=seeded()).to(dtype)
    x = torch.randn(batch, positions, width, generator=seeded(1), dtype=dtype, requires_grad=True)
    gate, up = block.gate_up_proj.weight.chunk(2)
    slow = layers.gated_feed_forward_definition(x, gate, up, block.down_proj.weight)
    agree(block(x), slow, [x], [block.gate_up_proj.weight, block.down_proj.weight])


@settings(deadline=None)
@given(st.integers(1, 3), st.integers(1, 6), st.sampled_from([0.1, 1e-6]), DTYPES)
def test_rms_norm_is_torchs(batch, width, eps, dtype):
    block = nn.RMSNorm(width, eps=eps, dtype=dtype)
    nn.init.normal_(block.weight, generator=seeded())
    x = torch.randn(batch, 4, width, generator=seeded(1), dtype=dtype, requires_grad=True)
    agree(block(x), layers.rms_norm_definition(x, block.weight, eps=eps), [x], [block.weight])


@given(st.lists(st.floats(-80, 80), min_size=1, max_size=5))
def test_silu_is_torchs(numbers):
    x = torch.tensor(numbers, dtype=torch.float64, requires_grad=True)
    agree(layers.silu(x), functional.silu(x), [x], [])


def test_sizes_that_cannot_be():
    with pytest.raises(UserError, match="embed_dim and hidden_dim"):
        layers.GatedFeedForward(4, 0)
    with pytest.raises(UserError, match="even head_dim"):
        models.llama_block(6, 2, 8)
