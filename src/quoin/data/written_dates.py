"""Dates as people write them, and as ISO 8601 does."""

import datetime
from collections.abc import Callable

import torch

__all__ = ["DATE_STYLES", "sample_date"]

# In English whatever the machine's language: strftime would follow its settings.
_MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
_DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
_FIRST = datetime.date(1970, 1, 1)
_COUNT = (datetime.date(2070, 1, 1) - _FIRST).days  # a century, so that a year of two digits is one year only

Style = Callable[[datetime.date], str]


def _month(date: datetime.date) -> str:
    return _MONTHS[date.month - 1]


def _weekday(date: datetime.date) -> str:
    return _DAYS[date.weekday()]


def _ordinal(date: datetime.date) -> str:
    day = date.day
    return f"{day}" + ("th" if 11 <= day <= 13 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th"))


DATE_STYLES: tuple[
    Style, ...
] = (  # no two write two days alike: dots separate day, month and year, slashes month, day and year
    lambda date: f"{date.day} {_month(date)} {date.year}",
    lambda date: f"{_month(date)} {date.day}, {date.year}",
    lambda date: f"{date.day} {_month(date)[:3]} {date.year}",
    lambda date: f"{date.day} {_month(date)[:3]} '{date.year % 100:02}",
    lambda date: f"{_weekday(date)}, {date.day} {_month(date)} {date.year}",
    lambda date: f"{_weekday(date)[:3]} {_month(date)[:3]} {date.day} {date.year}",
    lambda date: f"the {_ordinal(date)} of {_month(date)} {date.year}",
    lambda date: f"{_month(date)} {_ordinal(date)}, {date.year}",
    lambda date: f"{date.day:02}.{date.month:02}.{date.year}",
    lambda date: f"{date.day}.{date.month}.{date.year % 100:02}",
    lambda date: f"{date.month}/{date.day}/{date.year}",
    lambda date: f"{date.month:02}/{date.day:02}/{date.year % 100:02}",
    lambda date: f"{date.day:02}-{_month(date)[:3].upper()}-{date.year}",
    lambda date: f"{date.year}{date.month:02}{date.day:02}",
)


def sample_date(generator: torch.Generator) -> tuple[str, str]:
    """A day from 1970 to 2069, written in one of `DATE_STYLES` and as year-month-day."""
    date = _FIRST + datetime.timedelta(days=int(torch.randint(_COUNT, (), generator=generator)))
    style = DATE_STYLES[int(torch.randint(len(DATE_STYLES), (), generator=generator))]
    return style(date), date.isoformat()
