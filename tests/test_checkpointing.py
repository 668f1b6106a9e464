"""Activations computed again instead of kept: the same numbers from less memory, and nothing counted twice."""

import copy
import json
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from commands import tried
from quoin.layers import PerformerAttention, decoder_block, transformer_block
from quoin.layers.checkpointing import call_block, checkpoint_activations, is_recomputing
from quoin.models import GPT, Transformer, TransformerLanguageModel, UNet, ViT
from seeds import seeded

pytestmark = pytest.mark.usefixtures("one_thread")
TOKENS = torch.randint(11, (3, 9), generator=seeded(0))


def language() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    model = GPT(11, embed_dim=16, num_heads=2, num_layers=3, context_length=8, dropout=0.3, generator=seeded(1))
    return model, lambda model: model(TOKENS[:, :-1], TOKENS[:, 1:])


def vision() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    model = ViT((1, 8, 8), 3, patch_size=2, embed_dim=16, num_heads=2, num_layers=2, dropout=0.3, generator=seeded(1))
    images = torch.randn(4, 1, 8, 8, generator=seeded(2))
    return model, lambda model: model(images).square().sum()


def translation() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    model = Transformer(
        11,
        11,
        [transformer_block(8, 2, dropout=0.3, generator=seeded(1)) for _ in range(2)],
        [decoder_block(8, 2, dropout=0.3, generator=seeded(2)) for _ in range(2)],
        dropout=0.1,
        generator=seeded(3),
    )
    lengths = torch.tensor([9, 2, 5])
    return model, lambda model: model(TOKENS, TOKENS, source_lengths=lengths, target_lengths=lengths).square().sum()


def diffusion() -> tuple[nn.Module, Callable[[nn.Module], Tensor]]:
    model = UNet((1, 8, 8), channels=(8, 16), num_groups=4, head_dim=8, generator=seeded(1))
    for parameter in model.parameters():  # at first some are zero, and so would be what is compared
        nn.init.normal_(parameter, std=0.1, generator=seeded(2))
    images, times = torch.randn(4, 1, 8, 8, generator=seeded(3)), torch.arange(4)
    return model, lambda model: model(images, times).square().sum()


def step(model: nn.Module, loss: Callable[[nn.Module], Tensor]) -> tuple[list[Tensor], int]:
    """The loss and its gradients, and the bytes of activations that were kept for them."""
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    torch.manual_seed(4)  # dropout's
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        value = loss(model)
    gradients = torch.autograd.grad(value, list(model.parameters()), allow_unused=True)
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    return [value, *(each for each in gradients if each is not None)], sum(
        size for pointer, size in kept.items() if pointer not in weights
    )


@pytest.mark.parametrize(("made", "blocks"), [(language, 3), (vision, 2), (translation, 4), (diffusion, None)])
def test_values_and_gradients_stay_to_the_bit_and_memory_shrinks(made, blocks):
    model, loss = made()
    model.train()
    plain, plain_bytes = step(model, loss)
    found = checkpoint_activations(model)
    assert found == blocks or (blocks is None and found > 2)
    again, fewer_bytes = step(model, loss)
    for ours, theirs in zip(again, plain, strict=True):
        assert torch.equal(ours, theirs)
    assert any(bool(each.any()) for each in plain[1:])
    assert fewer_bytes < 0.6 * plain_bytes


def test_without_gradients_nothing_is_computed_twice():
    calls = []

    class Block(nn.Linear):
        checkpoints_activations = False

        def forward(self, input: Tensor) -> Tensor:
            calls.append(is_recomputing())
            return super().forward(input).relu()

    block = Block(2, 2)
    x = torch.ones(1, 2, requires_grad=True)
    call_block(block, block, x).sum().backward()
    assert calls == [False]
    assert checkpoint_activations(nn.Sequential(block, nn.Linear(2, 2))) == 1
    call_block(block, block, x).sum().backward()
    assert calls == [False, False, True]
    with torch.no_grad():
        call_block(block, block, x)
    assert calls == [False, False, True, False]
    assert not is_recomputing()


def test_a_pass_that_is_computed_twice_counts_once():
    attention = PerformerAttention(4, 8, redraw_interval=2, generator=seeded(1))
    blocks = [transformer_block(8, 2, inner_attention=attention, generator=seeded(2))]
    model = TransformerLanguageModel(11, blocks, generator=seeded(3)).train()
    again = copy.deepcopy(model)
    assert checkpoint_activations(again) == 1
    for _ in range(5):
        one, two = (step(each, lambda model: model(TOKENS[:, :-1], TOKENS[:, 1:]))[0] for each in (model, again))
        assert all(torch.equal(ours, theirs) for ours, theirs in zip(one, two, strict=True))
    for name, buffer in model.named_buffers():
        assert torch.equal(buffer, again.get_buffer(name)), name


@pytest.mark.filterwarnings("ignore")
def test_it_can_be_compiled():
    model, loss = language()
    model.eval()  # a compiler draws other numbers
    plain, _ = step(model, loss)
    checkpoint_activations(model)
    torch._dynamo.reset()
    compiled = torch.compile(loss, backend="aot_eager", fullgraph=True)
    found, _ = step(model, compiled)
    for ours, theirs in zip(found, plain, strict=True):
        torch.testing.assert_close(ours, theirs)


SMALL = ["--embed-dim", "8", "--num-heads", "1", "--num-layers", "1", "--context-length", "8", "--max-steps", "3"]


def test_a_run_with_it_learns_the_same_and_one_that_cannot_says_so(tmp_path):
    common = ["--device", "cpu", "--num-threads", 1, "--json", "--runs", tmp_path]
    found = []
    for words in ([], ["--checkpoint-activations"]):
        code, out, err = tried("train", "transformer-lm", *SMALL, *words, *common)
        assert code == 0, err
        assert "changes nothing" not in err
        found.append(json.loads(out)["metrics"])
    assert found[0] == found[1]
    code, _, err = tried("train", "mlp", "--max-steps", 1, "--checkpoint-activations", *common[:4], "--runs", tmp_path)
    assert code == 0
    assert "--checkpoint-activations changes nothing here: the model of mlp" in err
