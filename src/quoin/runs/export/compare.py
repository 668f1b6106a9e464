"""What was written beside what the run answers itself: random inputs of two sizes, real rows, and the scripts."""

import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from quoin.errors import UserError
from quoin.runs.export.exportable import ExportPart, LoopCheck, ScriptCheck, Tensors, draw_inputs
from quoin.runs.export.written import TOLERANCE, Difference, largest_difference

__all__ = ["compare_part", "compare_script"]

TIME_LIMIT = 600.0  # seconds of a script


def compare_part(part: ExportPart | LoopCheck, opened: Callable[..., Tensors]) -> Iterator[Difference | str]:
    """The differences of a part, or of a loop over parts, that the other runtime opened; a string is a note of what was
    not compared."""
    tolerance = TOLERANCE if part.tolerance is None else part.tolerance
    for number in range(2 if part.free_axes else 1):
        sizes = {axis.name: axis.tried[number] for axis in part.free_axes}
        words = ", ".join([f"{part.name}: random"] + [f"{name} {size}" for name, size in sizes.items()])
        inputs = draw_inputs(part, sizes, seed=1 + number)
        yield Difference(words, _largest(part.answers(inputs), opened(*inputs)), tolerance)
    if part.real is None:
        return
    try:
        inputs = part.real()
    except (UserError, OSError) as error:
        yield f"compared on random inputs alone, for its own data are not at hand: {error}"
        return
    words = f"{part.name}: of its test data, {inputs[0].shape[0]}"
    yield Difference(words, _largest(part.answers(inputs), opened(*inputs)), tolerance)


def compare_script(check: ScriptCheck, folder: Path) -> Difference:
    """What a script answers, in a process of its own."""
    with tempfile.TemporaryDirectory() as scratch:
        places = {"out": f"{scratch}/out.npy"} | {name: f"{scratch}/{name}.npy" for name in check.files}
        for name, array in check.files.items():
            np.save(places[name], array.numpy())
        command = [sys.executable, str(folder / check.script), *(word.format(**places) for word in check.words)]
        ran = subprocess.run(command, capture_output=True, timeout=TIME_LIMIT, cwd=scratch)
        words = " ".join(word for word in check.words if "{" not in word and not word.startswith("--out"))
        what = f"{check.script} {words if len(words) <= 48 else words[:47] + '…'}".rstrip()
        tolerance = TOLERANCE if check.tolerance is None else check.tolerance
        if ran.returncode:
            last = ran.stderr.decode(errors="replace").strip().splitlines()[-1:]
            return Difference(f"{what} ends with {ran.returncode} {' '.join(last)[:200]}", float("inf"), tolerance)
        expected = check.expected()
        if isinstance(expected, str):
            got = ran.stdout.decode(errors="replace").removesuffix("\n")
            return Difference(what, 0.0 if got == expected else float("inf"), 0.0)
        return Difference(what, _largest((expected,), (torch.from_numpy(np.load(places["out"])),)), tolerance)


def _largest(ours: Tensors, theirs: Tensors) -> float:
    if len(ours) != len(theirs):
        return float("inf")
    found = [largest_difference(*_without_infinities(a, b)) for a, b in zip(ours, theirs)]
    return float("nan") if any(each != each for each in found) else max(found)


def _without_infinities(ours: Tensor, theirs: Tensor) -> tuple[Tensor, Tensor]:
    """Where both are the same infinity, such as the logit of a token that is never predicted, they do not differ."""
    if ours.shape != theirs.shape:
        return ours, theirs
    both = torch.isinf(ours) & (ours == theirs)
    return ours.masked_fill(both, 0), theirs.masked_fill(both, 0)
