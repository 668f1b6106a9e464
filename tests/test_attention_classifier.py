"""The classifier that attends over the rows of an image: built from its parts, aware of the rows' order, and clear about mistakes."""

import pytest
import torch

from quoin.cli import main
from quoin.errors import Mistake
from quoin.models import AttentionClassifier
from seeds import seeded


def test_it_is_what_its_parts_compute():
    model = AttentionClassifier((2, 5, 3), 4, width=6, heads=2, layers=2, generator=seeded(0)).double().eval()
    images = torch.randn(7, 2, 5, 3, generator=seeded(1), dtype=torch.float64)
    expected = []
    for image in images:  # one image at a time, row by row, head by head
        x = torch.stack([model.embed(image[:, row].flatten()) for row in range(5)]) + model.positions.codes
        for block in model.blocks:
            y, attention = block.norm(x), block.attention
            heads = []
            for f_q, f_k, f_v in attention.head_maps():
                scores = f_q(y) @ f_k(y).T / 3**0.5
                heads.append(scores.exp() / scores.exp().sum(-1, keepdim=True) @ f_v(y))
            x = x + torch.cat(heads, -1) @ attention.f_o.weight.T + attention.f_o.bias
        expected.append(model.judge(model.norm(x).mean(0)))
    torch.testing.assert_close(model(images), torch.stack(expected))


def test_only_the_positions_tell_it_the_order_of_the_rows():
    model = AttentionClassifier((1, 8, 8), 10, generator=seeded(0)).double().eval()
    images = torch.randn(3, 1, 8, 8, generator=seeded(1), dtype=torch.float64)
    shuffled = images[:, :, torch.randperm(8, generator=seeded(2))]
    assert (model(images) - model(shuffled)).abs().max() > 1e-6
    torch.nn.init.zeros_(model.positions.codes)
    torch.testing.assert_close(model(images), model(shuffled))


def test_the_generator_alone_decides_the_start():
    first, second = (AttentionClassifier((1, 8, 8), 10, generator=seeded(5)).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_mistakes_are_told_in_one_line(capsys, tmp_path):
    for mistaken, words in (
        (lambda: AttentionClassifier((8, 8), 10), "image_shape as"),  # type: ignore[arg-type]
        (lambda: AttentionClassifier((1, 8, 8), 0), "at least one class"),
        (lambda: AttentionClassifier((1, 8, 8), 10, width=10, heads=4), "heads that divide the width 10, came 4"),
        (lambda: AttentionClassifier((1, 8, 8), 10, width=0), "width to be a positive whole number"),
        (lambda: AttentionClassifier((1, 8, 8), 10, layers=0), "at least one attention layer, came 0"),
        (lambda: AttentionClassifier((1, 8, 8), 10, dropout=1.0), "below 1, came 1.0"),
        (lambda: AttentionClassifier((1, 8, 8), 10)(torch.zeros(2, 64)), "shape"),
    ):
        with pytest.raises(Mistake, match=words) as caught:
            mistaken()
        assert "\n" not in str(caught.value)
    assert main(["train", "attention-digits", "--heads", "3", "--runs", str(tmp_path)]) == 2
    assert "expected heads that divide the width 64, came 3" in capsys.readouterr().err
    assert main(["train", "attention-digits", "--data", "iris", "--runs", str(tmp_path)]) == 2
    assert "expected images" in capsys.readouterr().err
