"""Events for other systems, as CloudEvents 1.0 in JSON.

Brokers, gateways and libraries understand the standard envelope (id, type, time, source) without knowing the
payload. Events contain no pictures and no names of persons.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from urllib.parse import quote
from uuid import uuid4

from api.record.inspection import Row
from api.record.uninspected_photograph import UninspectedPhotograph
from segdec.config import GOOD
from segdec.runtime.identifiers import NOT_INSPECTED, REVIEW

EventType = Literal["inspected", "reviewed", "not_inspected"]
TYPE_PREFIX = "segdec."
MEDIA_TYPE = "application/cloudevents+json"
MAX_REGIONS = 50
"""Largest regions that an event contains; brokers limit the size of messages."""


Verdict = Literal["good", "review", "defect", "not_inspected"]
VERDICTS: dict[str, Verdict] = {GOOD: "good", REVIEW: "review", NOT_INSPECTED: "not_inspected"}


def verdict_of(label: str) -> Verdict:
    """Returns the verdict of a label: itself, or `defect` for a class of defects."""
    return VERDICTS.get(label, "defect")


def inspected_event(row: Row, public_url: str | None = None) -> str:
    """Returns the event of a row of `tables.inspections`; `public_url` is the address of the pages."""
    regions = sorted(json.loads(row["answer"])["regions"], key=lambda one: -one["area_px"])
    data = {
        **_facts(row, public_url),
        **{name: row[name] for name in ("score", "threshold", "review_threshold", "model", "version")},
        "plan": _describe_plan(row),
        "metadata": json.loads(row["details"]),
        "region_count": len(regions),
        "regions": [
            {name: region.get(name) for name in ("bbox", "area_px", "label")}
            for region in regions[:MAX_REGIONS]
        ],
    }
    return _wrap("inspected", row["station"], f"records/{row['id']}", row["inspected_at"], data)


def _describe_plan(row: Row) -> dict[str, Any] | None:
    """Returns which inspection plan decided and why; None without one."""
    if row["plan"] is None:
        return None
    return {
        "name": row["plan"],
        "version": row["plan_version"],
        "severity": row["plan_severity"],
        "finding": row["plan_finding"],
        "model_label": row["model_label"],
    }


def reviewed_event(row: Row, now: datetime, public_url: str | None = None) -> str:
    """Returns the event of a review at `now`, or of its withdrawal; `row` is the inspection after it.

    `public_url` is as for `inspected_event`.
    """
    label, moment = row["reviewed_label"], row["reviewed_at"]
    data = {
        **_facts(row, public_url),
        "reviewed_label": label,
        "reviewed_at": None if label is None else moment.isoformat(),
        "revision": row["revision"],
    }
    return _wrap("reviewed", row["station"], f"records/{row['id']}", now, data)


def not_inspected_event(photograph: UninspectedPhotograph) -> str:
    """Returns the event of a photograph without a verdict, or of `count` similar ones."""
    names = ("station", "part_id", "status", "code", "detail", "count")
    facts = {name: getattr(photograph, name) for name in names}
    data = {"record_id": None, "url": None, "label": None, "verdict": "not_inspected", **facts}
    subject = f"stations/{_quoted(photograph.station)}/not_inspected"
    return _wrap("not_inspected", photograph.station, subject, photograph.at, data)


def _facts(row: Row, public_url: str | None) -> dict[str, Any]:
    named = {name: row[name] for name in ("station", "part_id", "label")}
    url = None if public_url is None else f"{public_url}/parts/{row['id']}"
    return {"record_id": row["id"], "url": url, **named, "verdict": verdict_of(row["label"])}


def _quoted(station: str) -> str:
    return quote(station, safe="", errors="replace")


def _wrap(kind: EventType, station: str, subject: str, moment: datetime, data: Mapping[str, Any]) -> str:
    return json.dumps(
        {
            "specversion": "1.0",
            "id": str(uuid4()),
            "source": f"/stations/{_quoted(station)}",
            "type": f"{TYPE_PREFIX}{kind}",
            "subject": subject,
            "time": moment.isoformat(),
            "datacontenttype": "application/json",
            "data": data,
        },
        separators=(",", ":"),
    )
