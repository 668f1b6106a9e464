"""Tensors in a safetensors file: written in pieces of some megabytes, and read where they lie, so that neither holds a
second copy of them.

    8 bytes    length of the header, little-endian
    header     JSON, {name: {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}, then blanks up to a
               multiple of 64 bytes
    data       the elements of each tensor in row-major order, little-endian, without gaps; tensors of wider elements
               come first, so that each begins at a multiple of its element's size

The format is that of https://github.com/huggingface/safetensors, and any reader of it opens the file. A tensor that is
sharded over processes (FSDP2) stands in the file as a whole: nothing in it tells how many processes wrote it.
"""

import json
import math
import struct
import sys
from collections.abc import Iterable, Iterator, Mapping
from mmap import mmap
from typing import Any

import torch
from jaxtyping import Shaped
from torch import Tensor

__all__ = [
    "DTYPE_NAMES",
    "byte_pieces",
    "dtype_called",
    "file_order",
    "is_sharded",
    "read_tensors",
    "tensor_pieces",
    "whole_tensor",
]

PIECE = 16 * 2**20  # bytes
# A tensor below this is copied out of a mapped file: what a task keeps of small things then does not hold the file.
SMALL = 2**20
_ALIGNMENT = 64

DTYPE_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.float8_e4m3fn: "F8_E4M3",
    torch.float8_e4m3fnuz: "F8_E4M3FNUZ",
    torch.float8_e5m2: "F8_E5M2",
    torch.float8_e5m2fnuz: "F8_E5M2FNUZ",
    torch.complex64: "C64",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint64: "U64",
    torch.uint32: "U32",
    torch.uint16: "U16",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}
_DTYPES = {name: dtype for dtype, name in DTYPE_NAMES.items()}


def tensor_pieces(
    tensors: Mapping[str, Shaped[Tensor, "..."]], *, metadata: Mapping[str, str] | None = None
) -> Iterator[bytes | memoryview]:
    """The bytes of the file in order, in pieces of at most 16 MiB; each tensor is brought to the CPU, and a sharded one
    gathered from all processes, when its turn comes, and freed before the next.

    Args:
        metadata: What stands in the header beside the tensors, for other libraries: ours writes and reads none.
    """
    return _joined(_file_parts(tensors, metadata))


def file_order(tensors: Mapping[str, Shaped[Tensor, "..."]]) -> list[str]:
    """The names in the order in which the file holds their tensors."""
    return sorted(tensors, key=lambda name: -tensors[name].itemsize)  # stable: else as they were given


def dtype_called(name: str) -> torch.dtype:
    """The dtype that the file calls `name`, such as "F32"."""
    return _DTYPES[name]


def is_sharded(tensor: Shaped[Tensor, "..."]) -> bool:
    """Whether this process has but a part of the tensor (a `DTensor`)."""
    module = sys.modules.get("torch.distributed.tensor")  # over a second to import: whoever made one has done so
    return module is not None and isinstance(tensor, module.DTensor)


def whole_tensor(tensor: Shaped[Tensor, "..."]) -> Shaped[Tensor, "..."]:
    """The tensor, gathered from all processes if it is sharded: then every process calls this."""
    whole: Any = tensor.detach()
    return whole.full_tensor() if is_sharded(whole) else whole


def read_tensors(content: mmap | bytearray) -> dict[str, Shaped[Tensor, "..."]]:
    """The tensors of a file whose bytes are `content`; large ones lie in it, and to write into those writes into it.

    What is no such file raises ValueError, KeyError or TypeError.
    """
    length = int.from_bytes(content[:8], "little")
    start = 8 + length
    if len(content) < 8 or start > len(content):
        raise ValueError("the header is longer than the file")
    found, at = {}, start
    for name, about in json.loads(content[8:start]).items():
        dtype, shape, (begin, end) = _DTYPES[about["dtype"]], about["shape"], about["data_offsets"]
        if any(type(size) is not int or size < 0 for size in shape):
            raise ValueError(f"{name} has no shape")
        num_elements = math.prod(shape)
        if begin != at - start or end != begin + num_elements * dtype.itemsize or start + end > len(content):
            raise ValueError(f"{name} is not where its shape says")
        if num_elements:
            flat = torch.frombuffer(content, dtype=dtype, count=num_elements, offset=at)
            found[name] = (flat.clone() if flat.nbytes < SMALL else flat).reshape(shape)
        else:
            found[name] = torch.empty(shape, dtype=dtype)
        at = start + end
    if at != len(content):
        raise ValueError("the file is longer than its tensors")
    return found


def _file_parts(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> Iterator[bytes | memoryview]:
    names = file_order(tensors)
    yield _header({name: tensors[name] for name in names}, metadata)
    for name in names:
        whole = whole_tensor(tensors[name])
        yield from byte_pieces(whole)
        del whole  # before the next is gathered


def _header(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> bytes:
    entries: dict[str, Any] = {} if metadata is None else {"__metadata__": dict(metadata)}
    at = 0
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPE_NAMES:
            raise TypeError(f"a safetensors file holds no {tensor.dtype}, which {name} is")
        end = at + tensor.numel() * tensor.itemsize
        entries[name] = {"dtype": DTYPE_NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(entries, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def byte_pieces(tensor: Shaped[Tensor, "..."]) -> Iterator[memoryview]:
    """The elements in row-major order as bytes, in pieces, each brought to the CPU when its turn comes."""
    if tensor.is_contiguous() or tensor.nbytes <= PIECE:
        rows = tensor.detach().resolve_conj().resolve_neg().contiguous()
        flat = rows.as_strided((rows.numel(),), (1,)).view(torch.uint8)  # of one element any stride is contiguous
        for piece in flat.split(PIECE) if flat.numel() else ():
            yield piece.cpu().numpy().data
    elif len(tensor) == 1:
        yield from byte_pieces(tensor[0])
    else:
        for rows in tensor.split(max(1, PIECE // (tensor.nbytes // len(tensor)))):
            yield from byte_pieces(rows)


def _joined(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """The same bytes, small pieces joined: a model has many tensors of a few bytes."""
    waiting = bytearray()
    for piece in pieces:
        is_large = len(piece) > PIECE // 2
        if waiting and (is_large or len(waiting) + len(piece) > PIECE):
            yield bytes(waiting)
            waiting.clear()
        if is_large:
            yield piece
        else:
            waiting += piece
    if waiting:
        yield bytes(waiting)
