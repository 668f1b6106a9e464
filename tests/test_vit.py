"""Images as tokens: the patch embedding is its definition, and the model sees where a patch stands."""

import math
import os
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from quoin.errors import UserError
from quoin.models import (
    PatchEmbedding,
    ViT,
    load_pretrained_vit,
    patch_embedding_definition,
    resize_position_embedding,
)
from seeds import seeded


@settings(deadline=None, max_examples=15)
@given(
    channels=st.integers(1, 3),
    rows=st.integers(1, 4),
    columns=st.integers(1, 4),
    side=st.integers(1, 3),
    width=st.integers(1, 6),
    dtype=st.sampled_from([torch.float32, torch.float64]),
    seed=st.integers(0, 2**32),
)
def test_the_patch_embedding_is_its_definition(channels, rows, columns, side, width, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    layer = PatchEmbedding((channels, rows * side, columns * side), side, width, generator=generator).to(dtype)
    weight, bias = layer.convolution.weight, layer.convolution.bias
    assert bias is not None
    torch.nn.init.normal_(bias, generator=generator)
    images = torch.randn(2, channels, rows * side, columns * side, dtype=dtype, generator=generator).requires_grad_()
    ours, defined = layer(images), patch_embedding_definition(images, weight, bias)
    assert ours.shape == (2, layer.num_patches, width)
    torch.testing.assert_close(ours, defined)
    upstream = torch.randn(ours.shape, dtype=dtype, generator=generator)
    leaves = [images, weight, bias]
    for mine, its in zip(
        torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(defined, leaves, upstream), strict=True
    ):
        torch.testing.assert_close(mine, its)


def test_where_a_patch_stands_is_seen():
    model = (
        ViT(
            (1, 4, 4),
            3,
            patch_size=2,
            embed_dim=8,
            num_heads=2,
            num_layers=1,
            generator=torch.Generator().manual_seed(0),
        )
        .double()
        .eval()
    )
    images = torch.randn(2, 1, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    turned = images.flip(2)  # with patches of equal rows exchanged, only the positions tell
    flat = images[:, :, :1].expand_as(images).clone()
    flat[:, :, 2:] += 1
    assert (model(flat) - model(flat.roll(2, dims=2))).abs().max() > 1e-6
    torch.nn.init.zeros_(model.position_embedding.weight)
    torch.testing.assert_close(model(flat), model(flat.roll(2, dims=2)))
    assert (model(images) - model(turned)).abs().max() > 1e-6


def test_mistakes_are_told():
    with pytest.raises(UserError, match="side divides images of 8 x 6 pixels, got 4"):
        ViT((1, 8, 6), 10, patch_size=4)
    with pytest.raises(UserError, match="num_heads that divide embed_dim 8, got 3"):
        ViT((1, 8, 8), 10, patch_size=4, embed_dim=8, num_heads=3)
    with pytest.raises(UserError, match="at least one block"):
        ViT((1, 8, 8), 10, patch_size=4, num_layers=0)
    with pytest.raises(UserError, match="at least one class"):
        ViT((1, 8, 8), 0, patch_size=4)


# ---- trained weights, by the names of other libraries -----------------------------------------------------------

WIDTH, HEADS, BLOCKS = 8, 2, 2


def hugging_face_state(classes: int = 5, grid: int = 3) -> dict[str, Tensor]:
    """Random weights for patches of 2 x 2 under the names that `transformers` documents for a ViT."""
    shapes: dict[str, tuple[int, ...]] = {
        "vit.embeddings.cls_token": (1, 1, WIDTH),
        "vit.embeddings.position_embeddings": (1, grid * grid + 1, WIDTH),
        "vit.embeddings.patch_embeddings.projection.weight": (WIDTH, 3, 2, 2),
        "vit.embeddings.patch_embeddings.projection.bias": (WIDTH,),
    }
    for block in range(BLOCKS):
        at = f"vit.encoder.layer.{block}."
        maps = {f"attention.attention.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
        maps |= {"attention.output.dense": (WIDTH, WIDTH)}
        maps |= {"intermediate.dense": (4 * WIDTH, WIDTH), "output.dense": (WIDTH, 4 * WIDTH)}
        for name, shape in maps.items():
            shapes |= {f"{at}{name}.weight": shape, f"{at}{name}.bias": shape[:1]}
        norms = [f"{at}layernorm_{when}" for when in ("before", "after")]
        shapes |= {f"{name}.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}
    shapes |= {"vit.layernorm.weight": (WIDTH,), "vit.layernorm.bias": (WIDTH,)}
    shapes |= {"classifier.weight": (classes, WIDTH), "classifier.bias": (classes,)}
    draw = seeded(2)
    return {name: 0.5 * torch.randn(shape, generator=draw) for name, shape in shapes.items()}


def forward(images: Tensor, state: dict[str, Tensor], eps: float = 1e-6) -> Tensor:
    """The published ViT, from the names alone."""

    def linear(x: Tensor, name: str) -> Tensor:
        return functional.linear(x, state[f"{name}.weight"], state[f"{name}.bias"])

    def norm(x: Tensor, name: str) -> Tensor:
        return functional.layer_norm(x, (WIDTH,), state[f"{name}.weight"], state[f"{name}.bias"], eps)

    at = "vit.embeddings.patch_embeddings.projection"
    x = functional.conv2d(images, state[f"{at}.weight"], state[f"{at}.bias"], stride=2).flatten(2).mT
    x = torch.cat([state["vit.embeddings.cls_token"].expand(len(x), 1, WIDTH), x], dim=1)
    x = x + state["vit.embeddings.position_embeddings"]
    for block in range(BLOCKS):
        at = f"vit.encoder.layer.{block}."
        y = norm(x, f"{at}layernorm_before")
        q, k, v = (
            linear(y, f"{at}attention.attention.{part}").unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for part in ("query", "key", "value")
        )
        weights = (q @ k.mT / math.sqrt(WIDTH // HEADS)).softmax(-1)
        x = x + linear((weights @ v).transpose(1, 2).flatten(2), f"{at}attention.output.dense")
        y = functional.gelu(linear(norm(x, f"{at}layernorm_after"), f"{at}intermediate.dense"))
        x = x + linear(y, f"{at}output.dense")
    return linear(norm(x, "vit.layernorm")[:, 0], "classifier")


def with_queries_joined(state: dict[str, Tensor], joined: str) -> dict[str, Tensor]:
    """One stack for queries, keys and values: `joined` is its name with `*` for weight or bias."""
    found = {name: tensor for name, tensor in state.items() if ".attention.attention." not in name}
    for block in range(BLOCKS):
        at = f"vit.encoder.layer.{block}."
        for part in ("weight", "bias"):
            parts = [state[f"{at}attention.attention.{name}.{part}"] for name in ("query", "key", "value")]
            found[at + joined.replace("*", part)] = torch.cat(parts)
    return found


def renamed(state: dict[str, Tensor], *pairs: tuple[str, str]) -> dict[str, Tensor]:
    for old, new in pairs:
        state = {re.sub(old, new, name): tensor for name, tensor in state.items()}
    return state


def torchvision_state() -> dict[str, Tensor]:
    return renamed(
        with_queries_joined(hugging_face_state(), "self_attention.in_proj_*"),
        (r"vit\.embeddings\.cls_token", "class_token"),
        (r"vit\.embeddings\.position_embeddings", "encoder.pos_embedding"),
        (r"vit\.embeddings\.patch_embeddings\.projection", "conv_proj"),
        (r"vit\.encoder\.layer\.(\d)\.", r"encoder.layers.encoder_layer_\1."),
        (r"attention\.output\.dense", "self_attention.out_proj"),
        ("layernorm_before", "ln_1"),
        ("layernorm_after", "ln_2"),
        (r"intermediate\.dense", "mlp.0"),
        (r"output\.dense", "mlp.3"),
        (r"vit\.layernorm", "encoder.ln"),
        ("classifier", "heads.head"),
    )


def timm_state() -> dict[str, Tensor]:
    return renamed(
        with_queries_joined(hugging_face_state(), "attn.qkv.*"),
        (r"vit\.embeddings\.cls_token", "cls_token"),
        (r"vit\.embeddings\.position_embeddings", "pos_embed"),
        (r"vit\.embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
        (r"vit\.encoder\.layer\.(\d)\.", r"blocks.\1."),
        (r"attention\.output\.dense", "attn.proj"),
        ("layernorm_before", "norm1"),
        ("layernorm_after", "norm2"),
        (r"intermediate\.dense", "mlp.fc1"),
        (r"output\.dense", "mlp.fc2"),
        (r"vit\.layernorm", "norm"),
        ("classifier", "head"),
    )


def published(side: int = 6) -> ViT:
    return ViT(
        (3, side, side), 5, patch_size=2, embed_dim=WIDTH, num_heads=HEADS, num_layers=BLOCKS, class_token=True,
        norm_eps=1e-6,
    ).eval()  # fmt: skip


@pytest.mark.parametrize("make", [hugging_face_state, torchvision_state, timm_state], ids=lambda make: make.__name__)
def test_trained_weights_of_three_libraries_mean_the_same(make):
    model = published()
    load_pretrained_vit(model, make())
    images = torch.randn(4, 3, 6, 6, generator=seeded(3))
    expected = forward(images, hugging_face_state())
    assert float(expected.std()) > 1e-2
    torch.testing.assert_close(model(images), expected, rtol=1e-4, atol=1e-5)


def test_torchvisions_older_names_are_read_and_another_model_is_refused():
    model, state = published(), torchvision_state()
    older = renamed(state, (r"mlp\.0", "mlp.linear_1"), (r"mlp\.3", "mlp.linear_2"))
    load_pretrained_vit(model, older)
    for name in ("encoder.pos_embedding", "encoder.layers.encoder_layer_1.ln_2.bias"):
        with pytest.raises(UserError, match=f"expected a tensor '{name}'"):
            load_pretrained_vit(model, {each: tensor for each, tensor in state.items() if each != name})
    with pytest.raises(UserError, match="beyond the model's"):
        load_pretrained_vit(model, state | {"encoder.layers.encoder_layer_2.ln_1.bias": torch.zeros(WIDTH)})
    with pytest.raises(UserError, match="class token"):
        load_pretrained_vit(ViT((3, 6, 6), 5, patch_size=2, embed_dim=WIDTH, num_heads=HEADS), state)


def test_position_embeddings_are_resized_for_images_of_another_size():
    """A plane stays one in the middle, the class token's own stays to the bit, and an equal grid changes nothing."""
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    weight = torch.cat([torch.tensor([[7.0, -7.0]]), torch.stack([y.flatten(), 3 * x.flatten()], dim=1)])
    assert torch.equal(resize_position_embedding(weight, (8, 8)), weight)
    larger = resize_position_embedding(weight, (16, 24))
    assert torch.equal(larger[0], weight[0])
    found = larger[1:].reshape(16, 24, 2)[4:-4, 6:-6]
    centres_y, centres_x = (torch.arange(16) + 0.5) / 2 - 0.5, (torch.arange(24) + 0.5) / 3 - 0.5
    torch.testing.assert_close(found[..., 0], centres_y[4:-4, None].expand(8, 12), rtol=0, atol=1e-4)
    torch.testing.assert_close(found[..., 1], 3 * centres_x[None, 6:-6].expand(8, 12), rtol=0, atol=1e-4)
    narrow, flat = resize_position_embedding(weight, (4, 1)), resize_position_embedding(weight, (1, 4))
    torch.testing.assert_close(narrow[1:, 0], flat[1:, 1] / 3)  # one axis is as the other
    model = published(side=10)
    load_pretrained_vit(model, torchvision_state())
    assert model(torch.zeros(1, 3, 10, 10)).isfinite().all()
    with pytest.raises(UserError, match="a square of patches, got 8"):
        resize_position_embedding(torch.zeros(8, 2), (2, 2))


@pytest.mark.deep
def test_transformers_computes_the_same():
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    transformers = pytest.importorskip("transformers")
    config = transformers.ViTConfig(
        hidden_size=WIDTH, num_hidden_layers=BLOCKS, num_attention_heads=HEADS, intermediate_size=4 * WIDTH,
        image_size=6, patch_size=2, num_labels=5, layer_norm_eps=1e-6,
    )  # fmt: skip
    theirs = transformers.ViTForImageClassification(config).eval()
    model = published()
    load_pretrained_vit(model, theirs.state_dict())
    images = torch.randn(4, 3, 6, 6, generator=seeded(3))
    with torch.no_grad():
        torch.testing.assert_close(model(images), theirs(images).logits, rtol=1e-4, atol=1e-5)
