"""The files of a folder in Hugging Face's form."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from jaxtyping import Shaped
from torch import Tensor

from quoin.train.tensor_file import tensor_pieces

__all__ = ["write_json", "write_weights"]


def write_json(path: Path, content: Mapping[str, Any]) -> Path:
    """Write strict JSON, readable."""
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path


def write_weights(path: Path, weights: Mapping[str, Shaped[Tensor, "..."]]) -> Path:
    """Write a safetensors file, a piece at a time: no second copy of the weights is in memory."""
    with path.open("wb") as file:
        for piece in tensor_pieces(weights, metadata={"format": "pt"}):  # without it some versions do not open it
            file.write(piece)
    return path
