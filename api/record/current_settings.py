"""Settings that people change while the service runs: stored in the record, where all replicas read them."""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from sqlalchemy import Connection, delete, insert, select

from api.errors import RequestError
from api.record.queries import add_audit_entry
from api.record.record import Record
from api.record.settings import RecordSettings
from api.record.tables import changed_settings

CHANGEABLE_SETTINGS = (
    "record_shifts",
    "record_zone",
    "record_defect_share",
    "record_good_share",
    "record_near",
    "record_good_days",
    "record_sample_share",
    "record_sample_days",
    "record_defect_days",
    "record_reviewed_days",
    "record_budget_gb",
    "record_free_share",
)
"""Names of the settings that can be changed while the service runs."""
TEXT_SETTINGS = ("record_shifts", "record_zone")
MIN_VALUES = {name: 1 for name in CHANGEABLE_SETTINGS if name.endswith(("_days", "_gb"))}
"""Lowest values: below them, a typing error would delete nearly all photographs at once."""
REFRESH_S = 10.0
"""Seconds after which a replica knows what was changed at another one."""
Value = float | int | str | None
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class StoredChange:
    """A setting that was changed: its value as JSON, by whom and when."""

    value: Value
    who: str
    at: datetime


class CurrentSettings:
    """The settings that count now: those of the start with the changes that the record stores.

    Args:
        started: Settings of the start.
        apply: Is called with the settings after each change, in the event loop.
    """

    def __init__(
        self, started: RecordSettings, record: Record, apply: Callable[[RecordSettings], None]
    ) -> None:
        self.started = self.current = started
        self.changes: Mapping[str, StoredChange] = {}
        self._record, self._apply = record, apply

    async def refresh(self) -> None:
        """Applies what the record stores; values that this version does not accept are ignored, and logged.

        Raises:
            RequestError: 503 if the record cannot be read.
        """
        stored = await self._record.read(read_changes)
        if stored == self.changes:
            return
        accepted = {}
        for name, change in stored.items():
            try:
                accepted[name] = parse_setting(name, change.value)
            except RequestError as error:
                logger.error("A changed setting is not used: %s", error)
        current = self.started.model_copy(update=accepted)
        self._apply(current)
        self.changes, self.current = stored, current

    async def refresh_regularly(self) -> None:
        """Refreshes until it is cancelled."""
        while True:
            try:
                await self.refresh()
            except RequestError:
                pass  # its reason is logged
            except Exception:  # the next time
                logger.exception("Changed settings were not read")
            await asyncio.sleep(REFRESH_S)

    async def change(self, name: str, value: Value, who: str) -> None:
        """Changes a setting.

        Raises:
            RequestError: 404 `setting_not_found`, 422 `bad_setting`.
        """
        value = dump_setting(name, parse_setting(name, value))
        await self._record.write(self._store, name, StoredChange(value, who, datetime.now(UTC)), who)
        await self.refresh()

    async def reset(self, name: str, who: str) -> None:
        """Returns to the value of the start.

        Raises:
            RequestError: 404 `setting_not_found`.
        """
        _check_changeable(name)
        await self._record.write(self._store, name, None, who)
        await self.refresh()

    def _store(self, connection: Connection, name: str, change: StoredChange | None, who: str) -> None:
        started = dump_setting(name, getattr(self.started, name))
        known = read_changes(connection).get(name)
        before, after = (started if it is None else it.value for it in (known, change))
        connection.execute(delete(changed_settings).where(changed_settings.c.name == name))
        if change is not None:
            row = {"name": name, "value": json.dumps(change.value), "who": who, "at": change.at}
            connection.execute(insert(changed_settings), row)
        if before != after:
            add_audit_entry(
                connection,
                who,
                "change a setting",
                before={"name": name, "value": before},
                after={"name": name, "value": after},
            )


def read_changes(connection: Connection) -> dict[str, StoredChange]:
    """Returns the changed settings by their names."""
    rows = connection.execute(select(changed_settings)).all()
    return {row.name: StoredChange(json.loads(row.value), row.who, row.at) for row in rows}


def parse_setting(name: str, value: Value) -> Any:
    """Returns the value of a setting as `Settings` has it.

    Raises:
        RequestError: 404 `setting_not_found`, 422 `bad_setting`.
    """
    _check_changeable(name)
    if name not in TEXT_SETTINGS and isinstance(value, str | bool):
        raise _bad_setting(name, value, "Expected a number")
    if isinstance(value, int | float) and value < MIN_VALUES.get(name, value):
        raise _bad_setting(name, value, f"Expected at least {MIN_VALUES[name]:g}")
    try:
        return _adapter(name).validate_python(value)
    except ValidationError as error:
        reason = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise _bad_setting(name, value, f"{reason[:1].upper()}{reason[1:]}") from error


def _bad_setting(name: str, value: Value, reason: str) -> RequestError:
    values = {"name": name, "value": str(value)[:80], "detail": f"{reason}."}
    return RequestError(422, "bad_setting", "{name} is {value!r}. {detail}", **values)


def dump_setting(name: str, value: Any) -> Value:
    """Returns the value of a setting as JSON: times of shifts as 06:00,14:00."""
    if name == "record_shifts":
        return ",".join(f"{start:%H:%M}" for start in value)
    dumped: Value = TypeAdapter(Any).dump_python(value, mode="json")
    return dumped


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    field = RecordSettings.model_fields[name]
    kind: Any = field.annotation
    for constraint in field.metadata:
        kind = Annotated[kind, constraint]
    return TypeAdapter(kind)


def _check_changeable(name: str) -> None:
    if name not in CHANGEABLE_SETTINGS:
        detail = (
            f"There is no setting '{name[:80]}' to change. Expected one of: {', '.join(CHANGEABLE_SETTINGS)}."
        )
        raise RequestError(404, "setting_not_found", detail)
