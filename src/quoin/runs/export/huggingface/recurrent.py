"""Recurrent language models, which transformers has no class for: a short file of code beside the weights, on torch's
own RNN, GRU or LSTM."""

from pathlib import Path

from quoin.models import RecurrentLanguageModel
from quoin.runs.export.huggingface.files import write_json, write_weights

__all__ = ["write_recurrent"]

MODULE = "modeling_quoin"
_CODE = '''"""A recurrent language model: token embeddings, torch's RNN, GRU or LSTM, and logits of the next token.

Written by Quoin. Needs torch and transformers.
"""

from dataclasses import dataclass

import torch
from torch import nn
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.utils import ModelOutput


class QuoinConfig(PretrainedConfig):
    model_type = "quoin"


@dataclass
class QuoinOutput(ModelOutput):
    loss: torch.Tensor | None = None
    logits: torch.Tensor | None = None
    hidden_state: tuple | None = None  # to go on from: give it to the next call as `hidden_state`


class QuoinForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = QuoinConfig
    main_input_name = "input_ids"

    def __init__(self, config):
        super().__init__(config)
        self.token_embedding = nn.Embedding(config.vocab_size, config.embed_dim)
        self.cell = getattr(nn, config.cell)(config.embed_dim, config.hidden_dim, config.num_layers, batch_first=True)
        self.lm_head = nn.Linear(config.hidden_dim, config.vocab_size)
        self.post_init()

    def _init_weights(self, module):
        pass

    def prepare_inputs_for_generation(self, input_ids, **kwargs):
        return {"input_ids": input_ids}  # all of them again: there is no cache that generate() knows

    def forward(self, input_ids, hidden_state=None, labels=None, **kwargs):
        outputs, hidden_state = self.cell(self.token_embedding(input_ids), hidden_state)
        logits = self.lm_head(outputs)
        loss = None
        if labels is not None:
            loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return QuoinOutput(loss=loss, logits=logits, hidden_state=hidden_state)
'''


def write_recurrent(model: RecurrentLanguageModel, folder: Path) -> list[Path]:
    """Write config.json, the weights and the code; tied embeddings are written twice, as two matrices."""
    config = {
        "model_type": "quoin",
        "architectures": ["QuoinForCausalLM"],
        "auto_map": {"AutoConfig": f"{MODULE}.QuoinConfig", "AutoModelForCausalLM": f"{MODULE}.QuoinForCausalLM"},
        "cell": type(model.cell).__name__,
        "vocab_size": model.vocab_size,
        "embed_dim": model.token_embedding.embedding_dim,
        "hidden_dim": model.cell.hidden_size,
        "num_layers": model.cell.num_layers,
        "tie_word_embeddings": False,
        "is_decoder": True,
        "dtype": "float32",
    }
    weights = {name: tensor.detach() for name, tensor in model.state_dict().items()}
    weights.setdefault("lm_head.weight", weights["token_embedding.weight"])
    code = folder / f"{MODULE}.py"
    code.write_text(_CODE, encoding="utf-8")
    return [write_json(folder / "config.json", config), write_weights(folder / "model.safetensors", weights), code]
