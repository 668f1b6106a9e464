"""Image classifiers for `AutoModelForImageClassification`: ViT and ResNet as Hugging Face has them, others with code of
their own (own_code.py); and the processor that makes their input of pictures."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.data import keyed_generator
from quoin.errors import UserError
from quoin.layers import BasicBlock, Bottleneck, ExactAttention
from quoin.models import ResNet, ViT
from quoin.models.resnet import huggingface_resnet_name
from quoin.models.vit_weights import huggingface_vit_weights
from quoin.runs.export.huggingface.files import write_json, write_weights
from quoin.runs.export.huggingface.model_card import write_model_card
from quoin.runs.export.huggingface.opening import is_there, not_compared, own_code_aside, quiet
from quoin.runs.export.huggingface.own_code import TRUST, write_own_code
from quoin.runs.export.parts.tabular import scaled_test_rows
from quoin.runs.export.written import Difference, Written, largest_difference
from quoin.runs.run import Run

__all__ = ["write_images"]

BATCHES = (2, 5)
_LOAD = """
import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification

processor = AutoImageProcessor.from_pretrained(".")
model = AutoModelForImageClassification.from_pretrained("."{trust})
picture = Image.new({mode!r}, ({width}, {height}))  # yours
with torch.no_grad():
    logits = model(processor(picture, return_tensors="pt")["pixel_values"]).logits
print(model.config.id2label[int(logits.argmax())])
"""


class _Counterpart(NamedTuple):
    config: dict[str, Any]
    weights: dict[str, Shaped[Tensor, "..."]]


def write_images(run: Run, folder: Path) -> Written:
    """Write the folder of an image classifier and compare its logits."""
    trained: Any = run.trained
    model, info = trained.model, trained.data_info
    channels, height, width = info.image_shape
    found, notes = _counterpart(model, info.image_shape), []
    config = _common(info)
    if found is not None:
        files = [
            write_json(folder / "config.json", found.config | config),
            write_weights(folder / "model.safetensors", found.weights),
        ]
    else:
        example = torch.zeros(2, *info.image_shape)
        files = write_own_code(
            model, folder, config, name=run.recipe_name, inputs={"pixel_values": example}, task="image"
        )
        notes.append(TRUST)
    files.append(write_json(folder / "preprocessor_config.json", _processor(trained)))
    if trained.threshold is not None:
        notes.append(f"the second class is predicted from p = {trained.threshold:.4g} on, which the logits do not know")
    code = _LOAD.format(
        mode="L" if channels == 1 else "RGB", width=width, height=height,
        trust="" if found is not None else ", trust_remote_code=True",
    )  # fmt: skip
    files.append(
        write_model_card(
            run, folder, code=code, library="transformers", pipeline_tag="image-classification", notes=notes
        )
    )
    if not is_there("transformers"):
        return Written(tuple(files), (), (*notes, not_compared("transformers")))
    differences = []
    for each in _compare(run, folder, own=found is None):
        (differences if isinstance(each, Difference) else notes).append(each)
    return Written(tuple(files), tuple(differences), tuple(notes))


def _common(info: Any) -> dict[str, Any]:
    names = {str(number): name for number, name in enumerate(info.class_names)}
    return {
        "num_channels": info.image_shape[0],
        "id2label": names,
        "label2id": {name: int(number) for number, name in names.items()},
        "problem_type": "single_label_classification",
        "dtype": "float32",
    }


def _counterpart(model: nn.Module, shape: tuple[int, int, int]) -> _Counterpart | None:
    """The model as a class of theirs has it, if one does."""
    if isinstance(model, ViT):
        return _vit(model, shape)
    return _resnet(model) if isinstance(model, ResNet) else None


def _vit(model: ViT, shape: tuple[int, int, int]) -> _Counterpart | None:
    blocks: list[Any] = list(model.encoder.blocks)
    exact = all(isinstance(each.attention.inner_attention, ExactAttention) for each in blocks)
    if model.class_token is None or not exact or shape[1] != shape[2]:  # theirs pools by the class token alone
        return None
    first = blocks[0]
    config = {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification"],
        "hidden_size": first.embed_dim,
        "num_hidden_layers": len(blocks),
        "num_attention_heads": first.attention.num_heads,
        "intermediate_size": first.feed_forward.down_proj.in_features,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": first.attention_connection.norm.eps,
        "image_size": shape[1],
        "patch_size": model.patches.convolution.kernel_size[0],
        "qkv_bias": True,
    }
    return _Counterpart(config, huggingface_vit_weights(model))


def _resnet(model: ResNet) -> _Counterpart | None:
    stages: list[Any] = [getattr(model, f"layer{number}") for number in range(1, model.num_stages + 1)]
    kinds = {type(block) for stage in stages for block in stage}
    pool = model.maxpool
    has_stem = model.conv1.kernel_size == (7, 7) and isinstance(pool, nn.MaxPool2d) and pool.stride == 2
    if not has_stem or kinds not in ({BasicBlock}, {Bottleneck}):
        return None
    last = "bn3" if kinds == {Bottleneck} else "bn2"
    config = {
        "model_type": "resnet",
        "architectures": ["ResNetForImageClassification"],
        "embedding_size": model.conv1.out_channels,
        "hidden_sizes": [getattr(stage[0], last).num_features for stage in stages],
        "depths": [len(stage) for stage in stages],
        "layer_type": "bottleneck" if kinds == {Bottleneck} else "basic",
        "hidden_act": "relu",
        "downsample_in_first_stage": False,
        "downsample_in_bottleneck": False,
    }
    weights = {huggingface_resnet_name(name): tensor for name, tensor in model.state_dict().items()}
    return _Counterpart(config, weights)


def _processor(trained: Any) -> dict[str, Any]:
    """What makes the model's input of a picture: its size, values from 0 to 1, and the scale of the training images."""
    channels, height, width = trained.data_info.image_shape
    mean, std = (
        each.expand(channels, 1, 1).flatten().tolist()
        for each in (trained.feature_scaler.mean, trained.feature_scaler.std)
    )
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": height, "width": width},
        "resample": 2,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": mean,
        "image_std": std,
    }


@torch.no_grad()
def _compare(run: Run, folder: Path, *, own: bool) -> Iterator[Any]:
    trained: Any = run.trained
    model, shape, generator = trained.model, trained.data_info.image_shape, keyed_generator("export", 0)
    with quiet(), own_code_aside():
        from transformers import AutoImageProcessor, AutoModelForImageClassification

        theirs: Any = AutoModelForImageClassification.from_pretrained(folder, trust_remote_code=own).eval()
        processor: Any = AutoImageProcessor.from_pretrained(folder)
    for rows in BATCHES:
        images = torch.randn(rows, *shape, generator=generator)
        words = f"random images, batch {rows}"
        yield Difference(words, largest_difference(model(images), theirs(pixel_values=images).logits))
    picture = torch.randint(256, shape, generator=generator, dtype=torch.uint8)
    with quiet():
        read: Any = processor(picture.permute(1, 2, 0).numpy(), return_tensors="pt")["pixel_values"]
    yield Difference("a random picture, read", largest_difference(_scaled(trained, picture), read[0]))
    try:
        images = scaled_test_rows(run)
    except (UserError, OSError) as error:
        yield f"compared on random images alone, for its own data are not at hand: {error}"
        return
    words = f"images of its test data, batch {len(images)}"
    yield Difference(words, largest_difference(model(images), theirs(pixel_values=images).logits))


def _scaled(trained: Any, picture: Tensor) -> Tensor:
    return trained.feature_scaler.transform(picture[None] / 255)[0]
