"""The classifier that attends over the rows of an image: built from its parts, aware of the rows' order, and clear
about mistakes."""

import pytest
import torch

from quoin.cli import main
from quoin.errors import UserError
from quoin.models import AttentionClassifier
from seeds import seeded


def test_it_is_what_its_parts_compute():
    model = (
        AttentionClassifier((2, 5, 3), 4, embed_dim=6, num_heads=2, num_layers=2, generator=seeded(0)).double().eval()
    )
    images = torch.randn(7, 2, 5, 3, generator=seeded(1), dtype=torch.float64)
    expected = []
    for image in images:  # one image at a time, row by row, head by head
        x = torch.stack([model.embed(image[:, row].flatten()) for row in range(5)]) + model.position_embedding.weight
        for block in model.blocks:
            y, attention = block.norm(x), block.attention
            heads = []
            for q_proj, k_proj, v_proj in attention.head_projections():
                scores = q_proj(y) @ k_proj(y).T / 3**0.5
                heads.append(scores.exp() / scores.exp().sum(-1, keepdim=True) @ v_proj(y))
            x = x + torch.cat(heads, -1) @ attention.out_proj.weight.T + attention.out_proj.bias
        expected.append(model.head(model.norm(x).mean(0)))
    torch.testing.assert_close(model(images), torch.stack(expected))


def test_only_the_positions_tell_it_the_order_of_the_rows():
    model = AttentionClassifier((1, 8, 8), 10, generator=seeded(0)).double().eval()
    images = torch.randn(3, 1, 8, 8, generator=seeded(1), dtype=torch.float64)
    shuffled = images[:, :, torch.randperm(8, generator=seeded(2))]
    assert (model(images) - model(shuffled)).abs().max() > 1e-6
    torch.nn.init.zeros_(model.position_embedding.weight)
    torch.testing.assert_close(model(images), model(shuffled))


def test_the_generator_alone_decides_the_start():
    first, second = (AttentionClassifier((1, 8, 8), 10, generator=seeded(5)).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_mistakes_are_told_in_one_line(capsys, tmp_path):
    for mistaken, words in (
        (lambda: AttentionClassifier((8, 8), 10), "image_shape as"),  # type: ignore[arg-type]
        (lambda: AttentionClassifier((1, 8, 8), 0), "at least one class"),
        (
            lambda: AttentionClassifier((1, 8, 8), 10, embed_dim=10, num_heads=4),
            "num_heads that divide embed_dim 10, got 4",
        ),
        (lambda: AttentionClassifier((1, 8, 8), 10, embed_dim=0), "embed_dim to be a positive whole number"),
        (lambda: AttentionClassifier((1, 8, 8), 10, num_layers=0), "at least one attention layer, got 0"),
        (lambda: AttentionClassifier((1, 8, 8), 10, dropout=1.0), "below 1, got 1.0"),
        (lambda: AttentionClassifier((1, 8, 8), 10)(torch.zeros(2, 64)), "shape"),
    ):
        with pytest.raises(UserError, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)
    assert main(["train", "attention-digits", "--num-heads", "3", "--runs", str(tmp_path)]) == 2
    assert "expected num_heads that divide embed_dim 64, got 3" in capsys.readouterr().err
    assert main(["train", "attention-digits", "--data", "iris", "--runs", str(tmp_path)]) == 2
    assert "expected images" in capsys.readouterr().err
