"""The variables of the OPC UA server: one set for each station, and one for all stations."""

import asyncio
import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from asyncua import Node, Server, ua

from api.delivery.escaping import escape_name
from api.delivery.line_state import MAX_STATIONS, StationState
from api.record.events import verdict_of

NAMESPACE = "urn:segdec:line"
ROOT = "segdec"
ALL, STATIONS = "all", "stations"
UNNAMED = "(unnamed)"
SEPARATORS = "/;"
"""Reserved in node identifiers: `/` between the levels, `;` by clients that read `ns=2;s=…`."""
TYPES = {
    "Verdict": ua.VariantType.String,
    "Label": ua.VariantType.String,
    "Score": ua.VariantType.Double,
    "PartId": ua.VariantType.String,
    "RecordId": ua.VariantType.Int64,
    "InspectedAt": ua.VariantType.DateTime,
    "Plan": ua.VariantType.String,
    "PlanVersion": ua.VariantType.UInt32,
    **dict.fromkeys(("PlanSeverity", "PlanFinding"), ua.VariantType.String),
    "StopRecordId": ua.VariantType.Int64,
    "StopAt": ua.VariantType.DateTime,
    **dict.fromkeys(("InspectedToday", "GoodToday", "DefectToday"), ua.VariantType.UInt32),
    **dict.fromkeys(("ReviewToday", "NotInspectedToday"), ua.VariantType.UInt32),
    **dict.fromkeys(("NotInspectedCode", "NotInspectedReason"), ua.VariantType.String),
    "NotInspectedPartId": ua.VariantType.String,
    "NotInspectedAt": ua.VariantType.DateTime,
}
HEARTBEAT = "Heartbeat"
NO_DATA_YET_STATUS = ua.StatusCode(ua.UInt32(ua.StatusCodes.BadWaitingForInitialData))
UNUSABLE_STATUS = ua.StatusCode(ua.UInt32(ua.StatusCodes.BadNoCommunication))
GOOD_STATUS = ua.StatusCode(ua.UInt32(ua.StatusCodes.Good))
logger = logging.getLogger(__name__)


class LineNodes:
    """Creates the variables on an initialised server, and writes changed values.

    Attributes:
        skipped: Stations whose variables could not be created or written (None = all together).
    """

    def __init__(self, server: Server) -> None:
        self.skipped: set[str | None] = set()
        self._server = server
        self._index = 0
        self._sets: dict[str | None, dict[str, Node]] = {}
        self._written: dict[tuple[str | None, str], tuple[Any, ua.StatusCode]] = {}
        self._root: Node | None = None
        self._stations: Node | None = None

    async def create(self) -> None:
        """Creates the nodes that do not depend on stations."""
        self._index = await self._server.register_namespace(NAMESPACE)
        self._root = await self._add_object(self._server.nodes.objects, ROOT, ROOT)
        self._stations = await self._add_object(self._root, f"{ROOT}/{STATIONS}", STATIONS)
        self._heartbeat = await self._add_variable(self._root, ROOT, HEARTBEAT, ua.VariantType.UInt32)
        await self._add_set(None)

    async def write_heartbeat(self, count: int) -> None:
        await self._heartbeat.write_value(ua.Variant(ua.UInt32(count % 2**32), ua.VariantType.UInt32))

    async def write_states(self, states: Mapping[str | None, StationState], *, usable: bool) -> None:
        """Writes the states of stations (None = all together); `usable`: whether they are up to date.

        A station that fails is tried again at the next call; the others do not notice.
        """
        known = dict.fromkeys(self._sets, StationState())  # a station may only have had some yesterday
        for station, state in {**known, **states}.items():
            if station not in self._sets and len(self._sets) > MAX_STATIONS:
                continue
            await asyncio.sleep(0)  # otherwise clients wait for seconds while hundreds of nodes are created
            try:
                await self._write_state(station, state, usable=usable)
                self.skipped.discard(station)
            except Exception:
                if station not in self.skipped:
                    logger.exception("OPC UA does not show station %r (None = all)", station)
                self.skipped.add(station)

    async def _write_state(self, station: str | None, state: StationState, *, usable: bool) -> None:
        if station not in self._sets:
            await self._add_set(station)
        moment = None if state.last is None else state.last["inspected_at"]
        uninspected_at = None if state.uninspected is None else state.uninspected["at"]
        values = [(name, value, moment) for name, value in _values(state).items()]
        values += [(name, value, uninspected_at) for name, value in _uninspected_values(state).items()]
        for name, value, at in values:
            status = UNUSABLE_STATUS if not usable else NO_DATA_YET_STATUS if value is None else GOOD_STATUS
            await self._write(station, name, value, status, at)

    async def mark_unusable(self) -> None:
        """Marks all values except the heartbeat as unusable, because the record does not answer."""
        for station, names in self._sets.items():
            for name in names:
                value, _ = self._written.get((station, name), (None, NO_DATA_YET_STATUS))
                await self._write(station, name, value, UNUSABLE_STATUS, None)

    async def _write(
        self, station: str | None, name: str, value: Any, status: ua.StatusCode, moment: datetime | None
    ) -> None:
        if self._written.get((station, name)) == (value, status):
            return
        variant = ua.Variant(value, TYPES[name] if value is not None else ua.VariantType.Null)
        await self._sets[station][name].write_value(ua.DataValue(variant, status, moment))
        self._written[station, name] = value, status

    async def _add_set(self, station: str | None) -> None:
        assert self._root is not None
        assert self._stations is not None
        if station is None:
            path, parent, name = f"{ROOT}/{ALL}", self._root, ALL
        else:
            path = f"{ROOT}/{STATIONS}/{escape_name(station, SEPARATORS)}"
            parent, name = self._stations, station or UNNAMED
        node = await self._add_object(parent, path, name)
        try:
            self._sets[station] = {
                variable: await self._add_variable(node, path, variable, kind)
                for variable, kind in TYPES.items()
            }
        except BaseException:
            await node.delete(recursive=True)
            raise

    async def _add_object(self, parent: Node, path: str, name: str) -> Node:
        return await parent.add_object(ua.NodeId(path, self._index), ua.QualifiedName(name, self._index))

    async def _add_variable(self, parent: Node, path: str, name: str, kind: ua.VariantType) -> Node:
        key, title = ua.NodeId(f"{path}/{name}", self._index), ua.QualifiedName(name, self._index)
        zero = ua.get_default_value(kind)
        return await parent.add_variable(key, title, zero, varianttype=kind)


def _values(state: StationState) -> dict[str, Any]:
    last, stop, counts = state.last, state.stop, state.counts
    return {
        "Verdict": None if last is None else verdict_of(last["label"]),
        "Label": None if last is None else last["label"],
        "Score": None if last is None else last["score"],
        "PartId": None if last is None else last["part_id"] or "",
        "RecordId": None if last is None else last["id"],
        "StopRecordId": None if stop is None else stop["id"],
        "StopAt": None if stop is None else stop["inspected_at"],
        "InspectedAt": None if last is None else last["inspected_at"],
        "Plan": None if last is None else last["plan"] or "",
        "PlanVersion": None if last is None else last["plan_version"] or 0,
        "PlanSeverity": None if last is None else last["plan_severity"] or "",
        "PlanFinding": None if last is None else last["plan_finding"] or "",
        "InspectedToday": state.inspected,
        "GoodToday": counts["good"],
        "DefectToday": counts["defect"],
        "ReviewToday": counts["review"],
        "NotInspectedToday": counts["uninspected"],
    }


def _uninspected_values(state: StationState) -> dict[str, Any]:
    uninspected = state.uninspected
    return {
        "NotInspectedCode": None if uninspected is None else uninspected["code"],
        "NotInspectedReason": None if uninspected is None else uninspected["detail"],
        "NotInspectedPartId": None if uninspected is None else uninspected["part_id"] or "",
        "NotInspectedAt": None if uninspected is None else uninspected["at"],
    }
