"""A model that Hugging Face has no class for, with code of its own beside it: a Python file of plain torch, which
`trust_remote_code=True` lets transformers run.

The code is written from the model's graph (torch.export): a line for each operation, in the order they are computed,
under the name of the layer that does it. It needs torch and transformers, and nothing of Quoin.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Shaped
from torch import Tensor, nn
from torch.fx import Node

from quoin.errors import UserError
from quoin.runs.export.huggingface.files import write_json, write_weights
from quoin.runs.export.trace import quietly, why_no_graph
from quoin.runs.export.written import CannotExportError

__all__ = ["TRUST", "write_own_code"]

TRUST = (
    "transformers has no class of this layout: modeling_quoin.py beside it has its code, and is run with "
    "trust_remote_code=True alone"
)
MODULE, MODEL_TYPE = "modeling_quoin", "quoin"
Task = Literal["image", "rows"]
_AUTO = {"image": "AutoModelForImageClassification", "rows": "AutoModel"}
_TEMPLATE = '''"""{summary}

Written by Quoin from the graph of its recipe {name}: the lines of `forward` are the operations of the model, in order.
Needs torch and transformers.
"""

from dataclasses import dataclass

import torch
from transformers import PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput

aten = torch.ops.aten
PARAMETERS = {{
{parameters}
}}  # their shapes
BUFFERS = {{
{buffers}
}}  # their shapes and dtypes


class QuoinConfig(PretrainedConfig):
    model_type = "{model_type}"


@dataclass
class QuoinOutput(ModelOutput):
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None


class QuoinModel(PreTrainedModel):
    """{doc}"""

    config_class = QuoinConfig
    main_input_name = "{main}"

    def __init__(self, config):
        super().__init__(config)
        for name, shape in PARAMETERS.items():
            self.register_parameter(name, torch.nn.Parameter(torch.zeros(shape)))
        for name, (shape, dtype) in BUFFERS.items():
            self.register_buffer(name, torch.zeros(shape, dtype=dtype))
        self.post_init()

    def _init_weights(self, module):
        pass

    def forward(self, {arguments}, labels=None, **kwargs):
        w = dict(self.named_parameters()) | dict(self.named_buffers())
{lines}
        loss = None if labels is None else torch.nn.functional.cross_entropy(logits, labels)
        return QuoinOutput(loss=loss, logits=logits)
'''


def write_own_code(
    model: nn.Module,
    folder: Path,
    config: Mapping[str, Any],
    *,
    name: str,
    inputs: Mapping[str, Shaped[Tensor, "batch ..."]],
    task: Task,
) -> list[Path]:
    """Write config.json, the weights and the code of `model`.

    Args:
        inputs: Examples of its arguments by name; the first axis of each is free.
    """
    program = _program(model, inputs, name)
    parameters, buffers, places = _tensors(program)
    lines = "\n".join(f"        {line}" for line in _lines(program, places, list(inputs)))
    code = _TEMPLATE.format(
        summary=f"The model of a run of {name}.",
        name=name,
        model_type=MODEL_TYPE,
        doc=f"{name}, from {' and '.join(inputs)} to logits.",
        main=next(iter(inputs)),
        arguments=", ".join(inputs),
        parameters="\n".join(f'    "{each}": {tuple(tensor.shape)},' for each, tensor in parameters.items()),
        buffers="\n".join(f'    "{each}": ({tuple(it.shape)}, {it.dtype}),' for each, it in buffers.items()),
        lines=lines,
    )
    (folder / f"{MODULE}.py").write_text(code, encoding="utf-8")
    auto = {"AutoConfig": f"{MODULE}.QuoinConfig", _AUTO[task]: f"{MODULE}.QuoinModel"}
    about = {"dtype": "float32", "model_type": MODEL_TYPE, "architectures": ["QuoinModel"], "auto_map": auto}
    return [
        write_json(folder / "config.json", about | dict(config)),
        write_weights(folder / "model.safetensors", parameters | buffers),
        folder / f"{MODULE}.py",
    ]


def _program(model: nn.Module, inputs: Mapping[str, Tensor], name: str) -> Any:
    batch = torch.export.Dim("batch", min=1)
    try:
        with torch.no_grad(), quietly():
            program = torch.export.export(
                model.eval(), tuple(inputs.values()), dynamic_shapes=[{0: batch} for _ in inputs], strict=False
            )
            return program.run_decompositions({})
    except UserError:
        raise
    except Exception as error:  # torch.export raises many kinds
        raise CannotExportError(
            f"Hugging Face has no counterpart of {name}, and its graph cannot be written as code "
            f"({why_no_graph(error)}); try --to torch or onnx, or keep its weights with --to safetensors"
        ) from error


def _tensors(program: Any) -> tuple[dict[str, Tensor], dict[str, Tensor], dict[str, str]]:
    """The parameters and the buffers that are used, by a name that a module may have, and how the code calls each."""
    signature, places = program.graph_signature, {}
    parameters: dict[str, Tensor] = {}
    buffers: dict[str, Tensor] = {}
    used = {node.name for node in program.graph.nodes if node.users}
    kinds = (
        (signature.inputs_to_parameters, program.state_dict, parameters),
        (signature.inputs_to_buffers, {**program.constants, **program.state_dict}, buffers),
        (signature.inputs_to_lifted_tensor_constants, program.constants, buffers),
    )
    for names, tensors, found in kinds:
        for node, path in names.items():
            if node in used:  # a count of batches is not
                flat, tensor = path.replace(".", "__"), tensors[path].detach()  # a parameter's name holds no dot
                places[node] = f'w["{flat}"]'
                if tensor.dtype == torch.float64:  # which transformers would make float32: as a sum of two such
                    high = tensor.float()
                    found |= {f"{flat}__high": high, f"{flat}__low": (tensor - high.double()).float()}
                    places[node] = f'(w["{flat}__high"].double() + w["{flat}__low"].double())'
                else:
                    found[flat] = tensor
    return parameters, buffers, places


def _lines(program: Any, places: Mapping[str, str], inputs: list[str]) -> Iterator[str]:
    named, home = dict(places), ""
    users = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    named |= dict(zip(users, inputs, strict=True))
    for node in program.graph.nodes:
        if node.op == "output":
            yield f"logits = {_value(node.args[0][0], named)}"
        if node.op != "call_function" or "assert" in str(node.target):
            continue
        if (layer := _layer(node)) != home:
            home = layer
            yield f"# {home}" if home else "# beside its layers"
        named[node.name] = node.name
        yield f"{node.name} = {_call(node, named)}"


def _layer(node: Node) -> str:
    stack = list(node.meta.get("nn_module_stack", {}).values())
    path = str(stack[-1][0]).removeprefix("L['self'].") if stack else ""
    return "" if path.startswith("_") else path  # what torch puts in the place of none


def _call(node: Node, named: Mapping[str, str]) -> str:
    target, arguments = str(node.target), [_value(each, named) for each in node.args]
    arguments += [f"{name}={_value(each, named)}" for name, each in node.kwargs.items()]
    if target.startswith("<built-in function getitem") or getattr(node.target, "__name__", "") == "getitem":
        return f"{arguments[0]}[{arguments[1]}]"
    if not isinstance(node.target, torch._ops.OpOverload):
        return f"({f' {_OPERATORS[node.target.__name__]} '.join(arguments)})"  # type: ignore[union-attr]
    return f"{target}({', '.join(arguments)})"


_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "floordiv": "//", "mod": "%"}


def _value(value: Any, named: Mapping[str, str]) -> str:
    if isinstance(value, Node):
        return named[value.name]
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(each, named) for each in value)}]"
    if isinstance(value, torch.dtype | torch.layout | torch.device):
        return repr(value) if not isinstance(value, torch.device) else f"torch.device({str(value)!r})"
    return repr(value)
