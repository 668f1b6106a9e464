"""A picture of the lab read back from its SVG: frames with their scales, texts, handles, and marks in the coordinates
of the frame that they stand in."""

import json
import math
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

__all__ = ["Frame", "Mark", "Read", "Text"]

RIM = 6  # a frame shows so much around it


@dataclass(frozen=True)
class Frame:
    """A part of the sheet with coordinates."""

    x: tuple[float, float]
    y: tuple[float, float]
    box: tuple[float, float, float, float]
    logs: tuple[bool, bool]

    def value(self, points) -> np.ndarray:
        """The coordinates of points of the sheet, as rows of x and y."""
        points, (left, top, width, height) = np.asarray(points, dtype=float), self.box
        parts = ((points[:, 0] - left) / width, 1 - (points[:, 1] - top) / height)
        return np.stack([along(span, part, log) for span, part, log in zip((self.x, self.y), parts, self.logs)], axis=1)

    def unit(self, axis: int) -> float:
        """How much of the axis a tenth of a unit of the sheet is, to which places are written (of its log, if log)."""
        low, high = (self.x, self.y)[axis]
        return 0.1 * abs(math.log10(high / low) if self.logs[axis] else high - low) / self.box[2 + axis]


def along(span: tuple[float, float], part, log: bool):
    low, high = span
    return low * (high / low) ** part if log else low + part * (high - low)


@dataclass(frozen=True)
class Text:
    """A text that stands upright."""

    words: str
    kind: str
    anchor: str
    size: float
    at: tuple[float, float]


@dataclass(frozen=True)
class Mark:
    """A line, a bar, an area or a point: its places on the sheet, its colour, its width, and what a hover says."""

    tag: str
    frame: tuple[float, float, float, float]  # the box it is cut off at
    style: str
    width: float
    title: str
    points: np.ndarray


class Read:
    """The marks of a picture."""

    def __init__(self, svg: str):
        self.root = ET.fromstring(svg)
        self.width, self.height = map(float, self.root.attrib["viewBox"].split()[2:])
        self.frames = [
            Frame(tuple(each["x"]), tuple(each["y"]), tuple(each["box"]), (each["xlog"], each["ylog"]))
            for each in json.loads(self.root.attrib["data-frames"])
        ]

    def handles(self) -> list[tuple[dict[str, str], tuple[float, float], np.ndarray]]:
        """What each handle says of itself, where it can be grasped, and the middle of what is drawn there."""
        found = []
        for group in self.root.iter("g"):
            if group.get("class") == "handle":
                target = next(each for each in group if each.get("class") == "target")
                drawn = next(iter(group.find("g")))
                found.append((group.attrib, places(target)[0], places(drawn)))
        return found

    def texts(self) -> list[Text]:
        return [
            Text(
                "".join(each.itertext()),
                each.get("class", ""),
                each.get("text-anchor", "start"),
                float(each.get("font-size", 12)),
                (float(each.attrib["x"]), float(each.attrib["y"])),
            )
            for each in self.root.iter("text")
            if each.get("transform") is None
        ]

    def ticks(self) -> Iterator[tuple[str, np.ndarray, tuple[float, float]]]:
        """The numbers of the axes: the label, the ends of the grid's line and the place of the label."""
        for line, label in zip(self.root, list(self.root)[1:]):
            if line.get("class") == "grid" and label.get("class") == "tick":
                yield label.text or "", places(line), (float(label.attrib["x"]), float(label.attrib["y"]))

    def marks(self, number: int = 0, role: str = "", tag: str = "") -> list[Mark]:
        """The marks in frame `number`, of this colour and this element, in the order in which they are drawn."""
        box, found = self.frames[number].box, []
        for cut in self.root.iter("svg"):
            if np.allclose(shown(cut), widened(box), atol=0.11):
                found += [
                    Mark(
                        each.tag,
                        box,
                        style,
                        float(each.get("stroke-width", 0)),
                        each.findtext("title") or "",
                        places(each),
                    )
                    for each, style in leaves(cut, "")
                    if (not tag or each.tag == tag) and (not role or f"(--{role})" in style or f"(--{role} " in style)
                ]
        return found

    def values(self, number: int = 0, role: str = "", tag: str = "path") -> list[np.ndarray]:
        """The points of those marks, in the coordinates of the frame."""
        return [self.frames[number].value(each.points) for each in self.marks(number, role, tag)]

    def arrows(self, number: int = 0, role: str = "") -> list[tuple[np.ndarray, np.ndarray]]:
        """Where the arrows in frame `number`, of this colour, begin and where their tips are."""
        frame, found = self.frames[number], []
        for cut in self.root.iter("svg"):
            for group in cut.findall("g") if np.allclose(shown(cut), widened(frame.box), atol=0.11) else ():
                shaft, tip = group.find("path"), group.find("polygon")
                if shaft is not None and tip is not None and f"(--{role}" in group.attrib["style"]:
                    ends = frame.value([places(shaft)[0], places(tip)[0]])
                    found.append((ends[0], ends[1]))
        return found


def shown(cut: ET.Element) -> list[float]:
    return [float(each) for each in cut.attrib["viewBox"].split()]


def widened(box: tuple[float, float, float, float]) -> list[float]:
    left, top, width, height = box
    return [left - RIM, top - RIM, width + 2 * RIM, height + 2 * RIM]


def leaves(element: ET.Element, style: str) -> Iterator[tuple[ET.Element, str]]:
    for each in element:
        own = each.get("style", "") or style
        if each.tag == "g":
            yield from leaves(each, own)
        elif each.tag != "title":
            yield each, own


def places(element: ET.Element) -> np.ndarray:
    """The corners of a mark on the sheet; a circle's and an ellipse's middle."""
    if element.tag in ("circle", "ellipse"):
        return np.array([[element.attrib["cx"], element.attrib["cy"]]], dtype=float)
    if element.tag == "rect":
        x, y, width, height = (float(element.attrib[name]) for name in ("x", "y", "width", "height"))
        return np.array([[x, y], [x + width, y + height]])
    if element.tag == "polygon":
        return np.array([each.split(",") for each in element.attrib["points"].split()], dtype=float)
    found, at = [], np.zeros(2)
    for command, numbers in re.findall(r"([MLHV])([^A-Z]*)", element.attrib.get("d", "")):
        values = [float(each) for each in numbers.replace(",", " ").split()]
        at = np.array(values if command in "ML" else [values[0], at[1]] if command == "H" else [at[0], values[0]])
        found.append(at)
    return np.array(found).reshape(-1, 2)
