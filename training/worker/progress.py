"""What the heartbeats of a worker report: progress, records of the training's log, printed lines."""

import json
import tomllib
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

MAX_EVENTS, MAX_EVENT_CHARACTERS, MAX_EVENT_VALUES = 100, 60_000, 3000
"""Events of a heartbeat, characters and values of their JSON, which the service limits; a comma counts as a
value.
"""
LINES_PER_EVENT = 5
EXPERIMENT = "config.toml"
"""Experiment of the run, beside its log; it is written before the first step."""


class ProgressReport:
    """Collects what was not reported yet, from the output and the `log` of the run, which may not exist yet.

    Attributes:
        progress: The latest values.
        stages: Names of the stages, by index.
        has_steps: Whether the training has logged a step since the report was made.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self._planned: dict[str, int] | None = None
        self._logged: set[tuple[str, int, int]] = set()
        self._events: list[dict[str, Any]] = []
        self.progress: dict[str, Any] = {"phase": "fetching data"}
        self.stages: dict[int, str] = {}
        self.has_steps = False

    def set_phase(self, phase: str) -> None:
        """Starts a phase, of which nothing is known yet."""
        self.progress = {"phase": phase}

    def skip_logged(self) -> None:
        """Treats all records of the log as reported: another worker has done it."""
        self._logged = {_key(record) for record in self._records()}

    def add_lines(self, lines: Sequence[str]) -> None:
        """Adds printed lines."""
        for start in range(0, len(lines), LINES_PER_EVENT):
            self._events.append({"kind": "output", "content": list(lines[start : start + LINES_PER_EVENT])})

    def read_log(self) -> None:
        """Adds new records of the log, and the latest values to the progress."""
        for record in self._records():
            self.stages[record["stage_index"]] = record["stage"]
            if _key(record) not in self._logged:
                self._logged.add(_key(record))
                self.has_steps = True
                self._events.append({"kind": "metrics", "content": record})
                self.progress |= {
                    "stage": record["stage"],
                    "step": record["step"],
                    **self._count_steps(record),
                }
                shown = ("loss",) if record["kind"] == "train" else ("average_precision", "pixel_f1")
                self.progress |= {name: record[name] for name in shown if name in record}

    def _count_steps(self, record: dict[str, Any]) -> dict[str, int]:
        """Returns the completed steps of all stages and the planned ones; nothing without an experiment."""
        config = self._log.with_name(EXPERIMENT)
        if self._planned is None and config.exists():
            stages = tomllib.loads(config.read_text("utf-8")).get("stages", {})
            self._planned = {name: stage.get("steps", 0) for name, stage in stages.items()}
        if not self._planned or record["stage"] not in self._planned:
            return {}
        names = list(self._planned)
        before = sum(self._planned[name] for name in names[: names.index(record["stage"])])
        return {"steps": before + record["step"], "of_steps": sum(self._planned.values())}

    def first_events(self) -> list[dict[str, Any]]:
        """Returns as many events as a heartbeat may have, the oldest first."""
        sent: list[dict[str, Any]] = []
        characters = values = 0
        for event in self._events[:MAX_EVENTS]:
            text = json.dumps(event)
            characters, values = characters + len(text), values + sum(map(text.count, ",[{"))
            if sent and (characters > MAX_EVENT_CHARACTERS or values > MAX_EVENT_VALUES):
                break
            sent.append(event)
        return sent

    def drop_events(self, number: int) -> None:
        """Removes the oldest events, which the service has stored."""
        del self._events[:number]

    def _records(self) -> list[dict[str, Any]]:
        records = []
        for line in self._log.read_text("utf-8").splitlines() if self._log.exists() else ():
            with suppress(ValueError):  # a line that is being written
                records.append(json.loads(line))
        return records


def _key(record: dict[str, Any]) -> tuple[str, int, int]:
    """Returns what identifies a record of a log."""
    return record["kind"], record["stage_index"], record["step"]
