"""The U-Net: its blocks against their definitions, the whole against Hugging Face's with the same weights, what it
refuses."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from quoin import layers, models
from quoin.errors import UserError
from seeds import seeded

DTYPES = st.sampled_from([torch.float32, torch.float64])
SIZES = st.integers(1, 4)


pytestmark = pytest.mark.usefixtures("one_thread")


def tolerance(dtype):
    return {"rtol": 1e-4, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-10, "atol": 1e-10}


def filled(module, generator, std=0.3):
    """The module with weights none of which is zero or one, as they are at its start."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(std * torch.randn(parameter.shape, generator=generator))
    return module


def agree(definition, block, inputs, dtype):
    """Values, and the gradients of a random weighing of them, of two functions of the same tensors."""
    inputs = [each.requires_grad_() for each in inputs]
    first, second = definition(*inputs), block(*inputs)
    torch.testing.assert_close(first, second, **tolerance(dtype))
    weighing = torch.randn(first.shape, generator=seeded(9), dtype=dtype)
    slopes = [torch.autograd.grad((each * weighing).sum(), inputs) for each in (first, second)]
    for one, other in zip(*slopes, strict=True):
        torch.testing.assert_close(one, other, **tolerance(dtype))


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), SIZES, SIZES, st.lists(SIZES, max_size=2), DTYPES, st.integers(0, 99))
def test_group_norm_is_torchs(batch, groups, share, positions, dtype, seed):
    generator, channels = seeded(seed), groups * share
    x = torch.randn(batch, channels, *positions, 2, generator=generator, dtype=dtype) + 3
    if dtype == torch.float32:  # two numbers that are nearly equal: rounding, over their distance, is all that is left
        x = x + torch.tensor([-4.0, 4.0])
    weight, bias = torch.randn(2, channels, generator=generator, dtype=dtype)
    agree(
        lambda x, weight, bias: layers.group_norm_definition(x, weight, bias, num_groups=groups).output,
        lambda x, weight, bias: nn.functional.group_norm(x, groups, weight, bias),
        [x, weight, bias],
        dtype,
    )


def test_group_norm_tells_the_moments_of_each_group():
    x = torch.tensor([[[1.0, 3.0], [5.0, 7.0], [0.0, 0.0], [0.0, 4.0]]])
    found = layers.group_norm_definition(x, torch.ones(4), torch.zeros(4), num_groups=2)
    torch.testing.assert_close(found.mean, torch.tensor([[4.0, 1.0]]))
    torch.testing.assert_close(found.variance, torch.tensor([[5.0, 3.0]]))
    with pytest.raises(UserError, match="groups that divide"):
        layers.group_norm_definition(x, torch.ones(4), torch.zeros(4), num_groups=3)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 3), SIZES, SIZES, SIZES, SIZES, DTYPES, st.integers(0, 99))
def test_a_doubled_image_is_convolved_without_being_made(batch, inputs, outputs, height, width, dtype, seed):
    generator = seeded(seed)
    x = torch.randn(batch, inputs, height, width, generator=generator, dtype=dtype)
    weight = torch.randn(outputs, inputs, 3, 3, generator=generator, dtype=dtype)
    bias = torch.randn(outputs, generator=generator, dtype=dtype)
    agree(layers.upsample_conv2d_definition, layers.upsample_conv2d, [x, weight, bias], dtype)


def test_upsampled_convolution_is_torchs_two_layers():
    block = filled(layers.UpsampledConv2d(3, 5), seeded(0))
    pair = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(3, 5, 3, padding=1))
    pair[1].load_state_dict(block.state_dict())
    x = torch.randn(2, 3, 4, 6, generator=seeded(1))
    torch.testing.assert_close(block(x), pair(x))
    with pytest.raises(UserError, match="kernel of 3 x 3"):
        layers.upsample_conv2d(x, torch.zeros(5, 3, 5, 5), torch.zeros(5))


@settings(max_examples=15, deadline=None)
@given(
    st.integers(1, 2),
    st.sampled_from([1, 2]),
    SIZES,
    SIZES,
    st.tuples(SIZES, st.integers(2, 4)),
    DTYPES,
    st.integers(0, 99),
)
def test_a_block_is_its_definition(batch, groups, share, outputs, sides, dtype, seed):
    generator = seeded(seed)
    inputs, outputs = groups * share, groups * outputs
    block = filled(models.UNetBlock(inputs, outputs, num_groups=groups).to(dtype), generator)
    x = torch.randn(batch, inputs, *sides, generator=generator, dtype=dtype)
    told = torch.randn(batch, outputs, generator=generator, dtype=dtype)
    names = [name for name, _ in block.named_parameters()]  # in the order of UNetBlockWeights

    def definition(x, told, *parameters):
        return models.unet_block_definition(x, told, models.UNetBlockWeights(*parameters), num_groups=groups)

    def fast(x, told, *parameters):
        return torch.func.functional_call(block, dict(zip(names, parameters, strict=True)), (x, told))

    agree(definition, fast, [x, told, *(each.detach().clone() for each in block.parameters())], dtype)


@pytest.mark.parametrize(("blocks", "channels", "classes"), [(1, 1, 0), (2, 3, 4)])
def test_the_whole_is_hugging_faces_with_its_weights(blocks, channels, classes):
    diffusers = pytest.importorskip("diffusers")
    torch.manual_seed(0)
    theirs = diffusers.UNet2DModel(
        sample_size=8,
        in_channels=channels,
        out_channels=channels,
        block_out_channels=(8, 16, 24),
        layers_per_block=blocks,
        down_block_types=("DownBlock2D", "DownBlock2D", "AttnDownBlock2D"),
        up_block_types=("AttnUpBlock2D", "UpBlock2D", "UpBlock2D"),
        norm_num_groups=4,
        num_class_embeds=classes + 1 if classes else None,
    )
    filled(theirs, seeded(1), std=0.2)
    ours = models.UNet((channels, 8, 8), channels=(8, 16, 24), num_blocks=blocks, num_groups=4, num_classes=classes)
    models.load_diffusers_unet(ours, theirs.state_dict())
    assert sum(each.numel() for each in ours.parameters()) == sum(each.numel() for each in theirs.parameters())
    x, t = torch.randn(3, channels, 8, 8, generator=seeded(2)), torch.tensor([0, 37, 999])
    labels = torch.tensor([0, 3, 4]) if classes else None
    expected = theirs(x, t, class_labels=labels).sample
    assert expected.std() > 0.1
    torch.testing.assert_close(ours(x, t, labels), expected, rtol=1e-3, atol=1e-4)


def test_their_weights_for_another_network_are_refused():
    ours = models.UNet((1, 4, 4), channels=(8, 16), num_groups=4)
    with pytest.raises(UserError, match=r"expected a tensor 'time_embedding\.linear_1\.weight'"):
        models.load_diffusers_unet(ours, {})


def test_the_bench_races_equal_networks():
    pytest.importorskip("diffusers")
    from quoin.bench import unet_implementations

    theirs, ours = unet_implementations.diffusers_unet(), unet_implementations.quoin_unet()
    models.load_diffusers_unet(ours, theirs.state_dict())
    assert 2.7e6 < sum(each.numel() for each in ours.parameters()) < 2.75e6
    x, t = torch.randn(2, 1, 16, 16, generator=seeded(0)), torch.tensor([3, 700])
    with torch.no_grad():
        torch.testing.assert_close(ours(x, t), theirs(x, t).sample, rtol=1e-3, atol=1e-5)


@pytest.fixture
def small():
    return filled(models.UNet((1, 4, 6), channels=(8, 8), num_groups=2, num_classes=3), seeded(0))


def test_it_hears_time_and_class(small):
    x = torch.randn(1, 1, 4, 6, generator=seeded(1)).expand(4, -1, -1, -1)
    t, labels = torch.tensor([5, 5, 6, 5]), torch.tensor([0, 1, 0, 3])
    same, other_class, other_time, no_class = small(x, t, labels)
    for other in (other_class, other_time, no_class):
        assert not torch.allclose(same, other)
    torch.testing.assert_close(small(x[3:], t[3:])[0], no_class)  # no labels stand for the label of none
    torch.testing.assert_close(small(x[3:], t[3:].float())[0], no_class)  # a time between steps is a float


def test_images_do_not_see_each_other(small):
    x = torch.randn(3, 1, 4, 6, generator=seeded(1))
    t, labels = torch.tensor([5, 1, 6]), torch.tensor([0, 1, 2])
    alone = torch.cat([small(x[[i]], t[[i]], labels[[i]]) for i in range(3)])
    torch.testing.assert_close(small(x, t, labels), alone)


def test_it_starts_by_saying_nothing_and_a_seed_gives_the_same_weights():
    first, again = (
        models.UNet((1, 4, 4), channels=(8, 16), num_groups=4, num_classes=2, generator=seeded(3)) for _ in range(2)
    )
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    x = torch.randn(2, 1, 4, 4, generator=seeded(0))
    assert not first(x, torch.tensor([1, 2])).any()
    first(x, torch.tensor([1, 2])).square().sum().backward()  # and learns from there


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"image_shape": (1, 10, 8), "channels": (8, 8, 8)}, "multiples of 4, got 10 x 8"),
        ({"image_shape": (1, 7, 7)}, "multiples of 2, got 7 x 7"),
        ({"image_shape": (8, 8)}, "image_shape"),
        ({"channels": ()}, "at least one size"),
        ({"channels": (8, 12), "num_groups": 8}, "num_groups 8 divides"),
        ({"channels": (8, 12)}, "head_dim that divides"),
        ({"channels": (3, 8), "num_groups": 1}, "even first number of channels"),
        ({"num_blocks": 0}, "num_blocks"),
        ({"num_classes": -1}, "num_classes"),
    ],
)
def test_what_cannot_be_built_is_refused(change, said):
    given = {"image_shape": (1, 8, 8), "channels": (8, 16), "num_groups": 4} | change
    with pytest.raises(UserError, match=said) as mistake:
        models.UNet(given.pop("image_shape"), **given)
    assert len(str(mistake.value).splitlines()) == 1


def test_labels_for_a_network_without_classes_and_other_images_are_refused(small):
    plain = models.UNet((1, 4, 4), channels=(8, 8), num_groups=2)
    with pytest.raises(UserError, match="num_classes"):
        plain(torch.zeros(1, 1, 4, 4), torch.tensor([1]), torch.tensor([0]))
    with pytest.raises(UserError, match="4x6 pixels"):
        small(torch.zeros(1, 1, 6, 4), torch.tensor([1]))
