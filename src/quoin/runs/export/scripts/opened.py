"""Exported parts, opened: the beginning of every script that is written beside them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).resolve().parent


def read_info() -> dict[str, Any]:
    """What quoin.json tells of the parts."""
    return json.loads((FOLDER / "quoin.json").read_text(encoding="utf-8"))


def open_part(name: str) -> Callable[..., list[np.ndarray]]:
    """The part `name` as a function from its inputs, by position, to the list of its outputs."""
    if (FOLDER / f"{name}.onnx").exists():
        import onnxruntime

        session = onnxruntime.InferenceSession(FOLDER / f"{name}.onnx", providers=["CPUExecutionProvider"])
        names = [each.name for each in session.get_inputs()]
        return lambda *inputs: [np.asarray(each) for each in session.run(None, dict(zip(names, inputs, strict=True)))]
    import torch

    module = torch.export.load(FOLDER / f"{name}.pt2").module()

    def call(*inputs: np.ndarray) -> list[np.ndarray]:
        with torch.no_grad():
            found = module(*map(torch.from_numpy, inputs))
        return [each.numpy() for each in (found if isinstance(found, tuple) else (found,))]

    return call
