"""What studies share that follow no gradient of one loss, or take their steps by the notes' own rules."""

from typing import Any

from torch import nn

from quoin.data import Batches
from quoin.train import load_strictly

__all__ = ["Study"]


class Study:
    """A model that steps by a rule of its own; a subclass names in `saved_attributes` what else survives a kill."""

    kind = "study"
    facts: Any = None
    saved_attributes: tuple[str, ...] = ()

    def __init__(self, model: nn.Module, batches: Batches) -> None:
        self.model: Any = model
        self.batches = batches

    def model_state(self) -> dict[str, Any]:
        """What prediction needs."""
        return {"weights": self.model.state_dict()}

    def state(self) -> dict[str, Any]:
        saved = {name: getattr(self, name) for name in self.saved_attributes}
        return {"model": self.model_state(), "attributes": saved, "batches": self.batches.state()}

    def load(self, state: dict[str, Any]) -> None:
        load_strictly(self.model, state["model"]["weights"])
        for name in self.saved_attributes:
            setattr(self, name, state["attributes"][name])
        self.batches.load(state["batches"])
