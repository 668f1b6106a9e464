"""Quoin's models in other people's training: Hugging Face's Trainer and a plain PyTorch loop, compiled and not.

With the same batches and optimizer all must end at the same weights, to rounding. Nothing is fetched.
"""

import copy
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from near import assert_near
from quoin.layers import LinearAttention
from quoin.losses import cross_entropy
from quoin.models import GPT, ViT

os.environ.setdefault("HF_HUB_OFFLINE", "1")

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS, BATCH, LR, VOCAB, LENGTH = 32, 8, 1e-2, 13, 12


class LanguageModel(nn.Module):
    """A model of Quoin's as Hugging Face calls models: named inputs, and a loss beside the logits."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model(input_ids)
        return {"loss": cross_entropy(logits.flatten(0, 1), labels.flatten()).mean(), "logits": logits}


class ImageModel(LanguageModel):
    def forward(self, input_ids: Tensor, labels: Tensor) -> dict[str, Tensor]:
        logits = self.model(input_ids)
        return {"loss": cross_entropy(logits, labels).mean(), "logits": logits}


def language() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """A small GPT, and texts in which each token follows from the last."""
    draw = torch.Generator().manual_seed(0)
    model = GPT(VOCAB, 16, 2, 2, LENGTH, generator=draw)
    first = torch.randint(VOCAB, (ROWS, 1), generator=draw)
    texts = (first + 5 * torch.arange(LENGTH + 1)) % VOCAB
    return LanguageModel(model), [{"input_ids": each[:-1], "labels": each[1:]} for each in texts]


def linear_language() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    model = GPT(VOCAB, 16, 2, 1, LENGTH, make_attention=LinearAttention, generator=torch.Generator().manual_seed(1))
    return LanguageModel(model), language()[1]


def images() -> tuple[nn.Module, list[dict[str, Tensor]]]:
    """A small ViT, and images whose class is the brighter half."""
    draw = torch.Generator().manual_seed(0)
    model = ViT((1, 8, 8), 2, patch_size=4, embed_dim=8, num_heads=2, num_layers=1, generator=draw)
    pixels, labels = torch.rand(ROWS, 1, 8, 8, generator=draw), torch.arange(ROWS) % 2
    pixels[:, :, :4] += labels[:, None, None, None]
    return ImageModel(model), [{"input_ids": x, "labels": y} for x, y in zip(pixels, labels, strict=True)]


PROBLEMS = {"gpt": language, "gpt, linear attention": linear_language, "vit": images}


def plain_loop(model: nn.Module, rows: list[dict[str, Tensor]], epochs: int, *, compiled: bool = False) -> list[float]:
    """The losses of all steps; rows in their order."""
    optimizer = torch.optim.AdamW(model.parameters(), LR, weight_decay=0.0)
    run: Any = torch.compile(model) if compiled else model
    losses = []
    for _ in range(epochs):
        for start in range(0, len(rows), BATCH):
            batch = {name: torch.stack([row[name] for row in rows[start : start + BATCH]]) for name in rows[0]}
            loss = run(**batch)["loss"]
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return losses


def huggingface_loop(
    model: nn.Module, rows: list[dict[str, Tensor]], epochs: int, folder: Path, *, compiled: bool = False
) -> list[float]:
    """The same by `transformers.Trainer`, which is told to keep the order and to change no learning rate."""
    transformers = pytest.importorskip("transformers")
    settings = transformers.TrainingArguments(
        output_dir=str(folder),
        per_device_train_batch_size=BATCH,
        num_train_epochs=epochs,
        learning_rate=LR,
        lr_scheduler_type="constant",
        weight_decay=0.0,
        max_grad_norm=0.0,
        optim="adamw_torch",
        adam_beta2=0.999,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
        torch_compile=compiled,
        dataloader_pin_memory=False,
        train_sampling_strategy="sequential",
    )
    trainer = transformers.Trainer(model=model, args=settings, train_dataset=rows)
    trainer.train()
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


def weights(model: nn.Module) -> Tensor:
    return torch.cat([each.detach().flatten() for each in model.parameters()])


@pytest.mark.parametrize("name", PROBLEMS)
def test_huggingface_s_trainer_ends_where_a_plain_loop_ends(name, tmp_path):
    model, rows = PROBLEMS[name]()
    theirs = copy.deepcopy(model)
    start = weights(model)
    losses = plain_loop(model, rows, epochs=3)
    assert losses[-1] < 0.9 * losses[0]
    told = huggingface_loop(theirs, rows, 3, tmp_path)
    assert told == pytest.approx(losses, rel=1e-3)
    assert_near(weights(theirs), weights(model), 1e-4)
    assert float((weights(model) - start).abs().max()) > 0.05  # what is compared has moved


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore")  # torch's compiler warns of what it imports
@pytest.mark.parametrize("name", PROBLEMS)
def test_compiled_loops_end_where_plain_ones_end(name, tmp_path):
    model, rows = PROBLEMS[name]()
    by_hand, by_trainer = copy.deepcopy(model), copy.deepcopy(model)
    losses = plain_loop(model, rows, epochs=3)
    assert plain_loop(by_hand, rows, 3, compiled=True) == pytest.approx(losses, rel=1e-3)
    assert huggingface_loop(by_trainer, rows, 3, tmp_path, compiled=True) == pytest.approx(losses, rel=1e-3)
    # Not the weights: keys' biases change nothing, their gradients are rounding, and Adam makes whole steps of that.
    batch = {name: torch.stack([row[name] for row in rows]) for name in rows[0]}
    expected = model(**batch)["logits"].detach()
    for each in (by_hand, by_trainer):
        assert_near(each(**batch)["logits"].detach(), expected, 2e-3)
