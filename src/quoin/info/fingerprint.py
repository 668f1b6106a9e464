"""What must be the same for a model with floats to give the same bits again: weights, build of
torch, processor, threads.
"""

import hashlib
import platform
from collections.abc import Mapping

import torch
from jaxtyping import Shaped
from torch import Tensor

__all__ = ["model_fingerprint"]


def model_fingerprint(name: str, weights: Mapping[str, Shaped[Tensor, "..."]]) -> str:
    """One line: the model's name and a digest of its weights, torch's version, the kernels it chose, the machine
    and the threads.

    >>> zeros, ones = (model_fingerprint("tiny", {"weight": weight}) for weight in (torch.zeros(2), torch.ones(2)))
    >>> zeros.startswith("tiny "), zeros == ones
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=8)
    for key, weight in sorted(weights.items()):
        digest.update(f"{key} {weight.dtype} {tuple(weight.shape)}\n".encode())
        digest.update(weight.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().tobytes())
    kernels = f"{torch.backends.cpu.get_cpu_capability()} on {platform.machine()}"
    return f"{name} {digest.hexdigest()}; torch {torch.__version__}; {kernels}; {torch.get_num_threads()} threads"
