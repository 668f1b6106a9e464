"""A trained model with what it must know of its data: the base of what each kind of run can do."""

from typing import TYPE_CHECKING, Any, ClassVar

from quoin.data.data_info import DataInfo
from quoin.runs.kinds import KINDS

if TYPE_CHECKING:
    from quoin.runs.run import Run

__all__ = ["Trained", "TrainedOtherwise"]


class Trained:
    """The best model of a run by validation, or the last where nothing is chosen, on the CPU and ready to be used.

    Subclasses add what their kind can do: `predict`, `evaluate` on other data, `generate`, `inspect`, `codec`.
    """

    data_info_class: ClassVar[type[DataInfo] | None] = (
        None  # what config.json remembers of the data; None where there are none
    )
    is_a: ClassVar[str] = "is a study, whose results are in its report"  # the end of a sentence about its run
    instead: ClassVar[str] = ""  # of what it cannot do; the commands for what it can, unless said

    def __init__(self, run: "Run") -> None:
        self.run, self.recipe, self.options, self.data_info = run, run.recipe, run.options, run.data_info
        self.model: Any
        self.model, self.saved, self.step = run.load_model()


class TrainedOtherwise(Trained):
    """Of a kind that Quoin does not know: the task of a user's own recipe says what it is."""

    is_a = f"is of a kind of its own, none of {', '.join(KINDS)},"
