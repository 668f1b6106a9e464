"""What the pages of the lab share: controls, pictures, exhibits, trained models, formulas."""

from typing import TYPE_CHECKING

from quoin.lazy import export_lazily

if TYPE_CHECKING:
    from quoin.lab.parts.controls import (
        RIGHT,
        Choice,
        Control,
        DragPoints,
        File,
        Handle,
        Paint,
        Slider,
        Step,
        Switch,
        Text,
        printed_choice,
    )
    from quoin.lab.parts.exhibit import Exhibit, Number, View, exhibit, exhibit_of
    from quoin.lab.parts.formula import Formula, function_of, parse_formula
    from quoin.lab.parts.marks import escape
    from quoin.lab.parts.own_table import OwnTable, read_table
    from quoin.lab.parts.page import exhibits_of, head, play, rest
    from quoin.lab.parts.picture import Axes, Picture
    from quoin.lab.parts.ticks import digits, ticks
    from quoin.lab.parts.trained import TrainedModel

__all__ = [
    "RIGHT",
    "Axes",
    "Choice",
    "Control",
    "DragPoints",
    "Exhibit",
    "File",
    "Formula",
    "Handle",
    "Number",
    "OwnTable",
    "Paint",
    "Picture",
    "Slider",
    "Step",
    "Switch",
    "Text",
    "TrainedModel",
    "View",
    "digits",
    "escape",
    "exhibit",
    "exhibit_of",
    "exhibits_of",
    "function_of",
    "head",
    "parse_formula",
    "play",
    "printed_choice",
    "read_table",
    "rest",
    "ticks",
]

export_lazily(__name__)
