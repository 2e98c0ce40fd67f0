"""Clicks of a person on a photograph."""

from collections.abc import Sequence
from dataclasses import dataclass

from api.errors import RequestError

MAX_CLICKS = 200
"""Maximum number of clicks on a photograph."""


@dataclass(frozen=True)
class Click:
    """A click on pixel (x, y), counted from the left and from the top: part of the defect, or not."""

    x: int
    y: int
    is_defect: bool


def check_clicks(clicks: Sequence[Click], height: int, width: int) -> tuple[Click, ...]:
    """Returns the clicks that count: of several on one pixel, only the last.

    Raises:
        RequestError: With the code `bad_click`, if a click is outside the photograph, or if there are too
            many.
    """
    if len(clicks) > MAX_CLICKS:
        detail = f"{len(clicks)} clicks arrived. Expected at most {MAX_CLICKS}: draw the rest."
        raise RequestError(400, "bad_click", detail)
    for number, click in enumerate(clicks, 1):
        if not (0 <= click.x < width and 0 <= click.y < height):
            raise RequestError(
                400,
                "bad_click",
                f"Click {number} is at x = {click.x}, y = {click.y}. Expected a pixel of the photograph: x "
                f"from 0 to {width - 1}, y from 0 to {height - 1}.",
            )
    latest = {(click.x, click.y): number for number, click in enumerate(clicks)}
    return tuple(clicks[number] for number in sorted(latest.values()))
