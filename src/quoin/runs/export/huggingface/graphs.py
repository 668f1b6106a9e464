"""Models of one graph that transformers has no classes for, such as decoders, velocities and mixtures: `AutoModel` with
code of their own, from the raw inputs of the other forms to their first output."""

from pathlib import Path

import torch
from jaxtyping import Shaped
from torch import Tensor, nn

from quoin.runs.export.exportable import ExportPart, draw_inputs
from quoin.runs.export.huggingface.model_card import write_model_card
from quoin.runs.export.huggingface.opening import is_there, not_compared, own_code_aside, quiet
from quoin.runs.export.huggingface.own_code import TRUST, write_own_code
from quoin.runs.export.parts import exportable_of
from quoin.runs.export.written import CannotExportError, Difference, Written, largest_difference
from quoin.runs.run import Run

__all__ = ["write_graph"]

_LOAD = """
import torch
from transformers import AutoModel

model = AutoModel.from_pretrained(".", trust_remote_code=True)
{inputs}
with torch.no_grad():
    {output} = model({arguments}).logits
print({output}.shape)
"""


class FirstOutput(nn.Module):
    """The part, with the first of its outputs alone: what a `ModelOutput` calls its logits."""

    def __init__(self, part: ExportPart) -> None:
        super().__init__()
        self.part = part.module

    def forward(  # one by one: torch.export takes *inputs for one argument
        self,
        first: Shaped[Tensor, "batch ..."],
        second: Shaped[Tensor, "batch ..."] | None = None,
        third: Shaped[Tensor, "batch ..."] | None = None,
    ) -> Shaped[Tensor, "batch ..."]:
        found = self.part(*(each for each in (first, second, third) if each is not None))
        return found[0] if isinstance(found, tuple) else found


def write_graph(run: Run, folder: Path) -> Written:
    """Write the folder of a model that is one graph, and compare its first output at two batch sizes."""
    parts = exportable_of(run).parts
    if len(parts) != 1 or any(not each.axes or isinstance(each.axes[0], int) for each in parts[0].inputs):
        raise CannotExportError(
            f"Hugging Face has no counterpart of {run.recipe_name}, the recipe of {run.path}, whose model is several "
            "graphs and a loop; it has the forms onnx, torch and safetensors: choose one with --to"
        )
    part = parts[0]
    traced = draw_inputs(part, {axis.name: axis.traced for axis in part.free_axes})
    named = {each.name: tensor for each, tensor in zip(part.inputs, traced, strict=True)}
    notes = [TRUST, f"its output `logits` is {part.outputs[0]}"]
    files = write_own_code(FirstOutput(part).eval(), folder, {}, name=run.recipe_name, inputs=named, task="rows")
    lines = [
        f"{name} = torch.zeros({(1, *tensor.shape[1:])}, dtype={tensor.dtype})  # {each.meaning or 'yours'}"
        for (name, tensor), each in zip(named.items(), part.inputs, strict=True)
    ]
    code = _LOAD.format(inputs="\n".join(lines), output=part.outputs[0], arguments=", ".join(named))
    files.append(write_model_card(run, folder, code=code, library="transformers", pipeline_tag="other", notes=notes))
    if not is_there("transformers"):
        return Written(tuple(files), (), (*notes, not_compared("transformers")))
    return Written(tuple(files), tuple(_compare(part, folder)), tuple(notes))


@torch.no_grad()
def _compare(part: ExportPart, folder: Path) -> list[Difference]:
    """By what the run itself answers, not by what was written."""
    with quiet(), own_code_aside():
        from transformers import AutoModel

        theirs = AutoModel.from_pretrained(folder, trust_remote_code=True).eval()
    found = []
    for number in range(2):
        sizes = {axis.name: axis.tried[number] for axis in part.free_axes}
        inputs = draw_inputs(part, sizes, seed=1 + number)
        words = ", ".join(f"{name} {size}" for name, size in sizes.items())
        value = largest_difference(part.answers(inputs)[0], theirs(*inputs).logits)
        found.append(Difference(f"random, {words}", value))
    return found
