"""Images as tokens: the patch embedding is its definition, and the model sees where a patch stands."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import UserError
from quoin.models import PatchEmbedding, ViT, patch_embedding_definition


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
