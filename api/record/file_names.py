"""Names of downloaded files: what they are about, without characters that a file system rejects."""

from collections.abc import Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from api.record.filters import Filters
from api.record.shifts import Span

MAX_PART = 40
"""Longest name of a station, lot or other filter in a file name, characters."""


def name_report(
    kind: str, span: Span, zone: ZoneInfo, station: str | None = None, tag: tuple[str, str] | None = None
) -> str:
    """Returns the name of a report without its ending: `segdec-shift-2026-01-31-0600`, with the start of the
    shift in the zone of the plant, or `segdec-lot-4711-cam1`.
    """
    begin = span.begin.astimezone(zone)
    if kind == "lot":
        parts = ["segdec"]
    elif kind == "week":
        parts = ["segdec-week", f"{begin:%G-W%V}"]
    else:
        parts = [f"segdec-{kind}", f"{begin:%Y-%m-%d-%H%M}" if kind == "shift" else f"{begin:%Y-%m-%d}"]
    return "-".join([*parts, *_clean_parts(*(tag or ()), station)])


def name_export(filters: Filters, zone: ZoneInfo, now: datetime) -> str:
    """Returns the name of an export without its ending: its period in the zone of the plant, until now if it
    has no end, and the other filters. Example: `segdec-inspections-until-2026-01-31-1405-defect-cam1`.
    """
    period = [] if filters.since is None else [f"from-{_moment(filters.since, zone)}"]
    period.append(f"until-{_moment(now if filters.until is None else filters.until, zone)}")
    reviewed = {None: None, True: "reviewed", False: "not_reviewed"}[filters.reviewed]
    distance = None if filters.min_distance is None else f"distance-{filters.min_distance:g}"
    names = (filters.verdict, filters.label, filters.station, filters.part_id, *(filters.tag or ()))
    others = (filters.version and f"version-{filters.version}", reviewed, filters.reviewer, distance)
    return "-".join(["segdec-inspections", *period, *_clean_parts(*names, *others)])


def _moment(moment: datetime, zone: ZoneInfo) -> str:
    return f"{moment.astimezone(zone):%Y-%m-%d-%H%M}"


def _clean_parts(*parts: str | None) -> Iterator[str]:
    """Yields the names that are given, each with letters, digits, dots, hyphens and underscores only."""
    for part in parts:
        if part:
            yield "".join(sign if sign.isalnum() or sign in ".-_" else "_" for sign in part)[:MAX_PART]
