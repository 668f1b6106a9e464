"""What studies share that follow no gradient of one loss, or step by the notes' own optimizers."""

from typing import Any, Protocol

from torch import nn

from quoin.data import BatchSampler
from quoin.train import load_state_dict_strict

__all__ = ["StepOptions", "Study"]


class StepOptions(Protocol):
    """What a study reads of its recipe's options, where a batch is a step."""

    @property
    def seed(self) -> int: ...

    @property
    def steps_per_epoch(self) -> int: ...


class Study:
    """A model with a step of its own; a subclass names in `saved_attributes` what else survives a kill."""

    kind = "study"
    data_info: Any = None
    saved_attributes: tuple[str, ...] = ()

    def __init__(self, model: nn.Module, batches: BatchSampler) -> None:
        self.model: Any = model
        self.batches = batches

    def model_state(self) -> dict[str, Any]:
        """What prediction needs."""
        return {"weights": self.model.state_dict()}

    def state_dict(self) -> dict[str, Any]:
        saved = {name: getattr(self, name) for name in self.saved_attributes}
        return {"model": self.model_state(), "attributes": saved, "batches": self.batches.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        load_state_dict_strict(self.model, state["model"]["weights"])
        for name in self.saved_attributes:
            setattr(self, name, state["attributes"][name])
        self.batches.load_state_dict(state["batches"])
