"""Images as tokens: the patch embedding is its definition, and the model sees where a patch stands."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from quoin.errors import Mistake
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
    for mine, its in zip(torch.autograd.grad(ours, leaves, upstream), torch.autograd.grad(defined, leaves, upstream), strict=True):
        torch.testing.assert_close(mine, its)


def test_where_a_patch_stands_is_seen():
    model = ViT((1, 4, 4), 3, side=2, width=8, heads=2, layers=1, generator=torch.Generator().manual_seed(0)).double().eval()
    images = torch.randn(2, 1, 4, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    turned = images.flip(2)  # with patches of equal rows exchanged, only the positions tell
    flat = images[:, :, :1].expand_as(images).clone()
    flat[:, :, 2:] += 1
    assert (model(flat) - model(flat.roll(2, dims=2))).abs().max() > 1e-6
    torch.nn.init.zeros_(model.positions.codes)
    torch.testing.assert_close(model(flat), model(flat.roll(2, dims=2)))
    assert (model(images) - model(turned)).abs().max() > 1e-6


def test_mistakes_are_told():
    with pytest.raises(Mistake, match="side divides images of 8 x 6 pixels, came 4"):
        ViT((1, 8, 6), 10, side=4)
    with pytest.raises(Mistake, match="heads that divide the width 8, came 3"):
        ViT((1, 8, 8), 10, side=4, width=8, heads=3)
    with pytest.raises(Mistake, match="at least one block"):
        ViT((1, 8, 8), 10, side=4, layers=0)
    with pytest.raises(Mistake, match="at least one class"):
        ViT((1, 8, 8), 0, side=4)
