"""Judges recorded parts by a plan, to show which verdicts it would change."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, RowMapping

from api.errors import RequestError
from api.inspecting.background_inspector import BackgroundInspector
from api.inspecting.encoded_photograph import EncodedPhotograph
from api.inspecting.plan_answer import make_verdict
from api.models.registry import ServedModel
from api.record.filters import equal
from api.record.queries import with_pictures
from api.record.record import Record
from api.record.tables import inspections
from segdec.config import GOOD
from segdec.errors import ImageError
from segdec.plan.judgement import PlanJudge
from segdec.runtime.identifiers import NOT_INSPECTED
from segdec.schemas import PlanSimulation, SimulatedPart

MAX_INSPECTED = 20
"""Photographs that the model inspects again in one request; one takes a fraction of a second."""
ANSWERED_COLUMNS = ("inspected_at", "station", "part_id", "version", "label", "reviewed_label")
"""Columns that are fields of a `SimulatedPart`."""
COLUMN_NAMES = (
    *("id", *ANSWERED_COLUMNS, "picture", "model_label"),
    *("manifest_sha256", "threshold", "review_threshold"),
)
PHOTOGRAPH_STATUSES = frozenset({404, 413, 422})
"""Statuses of errors that concern a single photograph."""


@dataclass
class Simulation:
    """Judges the newest recorded parts of a model, which inspects again what it did not call good.

    What the model calls good stays good by any plan.

    Args:
        record: Has the parts with their photographs.
        inspector: Runs the model while no request needs it.
        model: The version that inspects.
        judge: The plan.
    """

    record: Record
    inspector: BackgroundInspector
    model: ServedModel
    judge: PlanJudge
    _parts: list[SimulatedPart] = field(default_factory=list)
    _reviewed: Counter[str] = field(default_factory=Counter)
    _counts: dict[str, int] = field(
        default_factory=lambda: dict.fromkeys(("good", "deleted", "not_inspected"), 0)
    )

    async def run(self, station: str | None, before: int | None, limit: int) -> PlanSimulation:
        """Judges up to `limit` parts with an id below `before`, of a station or of all.

        Raises:
            RequestError: 503 if the record cannot be read.
        """
        rows = await self.record.read(_read_rows, self.model, station, before, limit + 1)
        inspected = judged = 0
        for row in rows[:limit]:
            if inspected == MAX_INSPECTED:
                break
            if self._is_certainly_good(row):
                self._counts["good"] += 1
                if row["reviewed_label"] is not None:
                    self._reviewed[row["reviewed_label"]] += 1
            elif row["label"] == NOT_INSPECTED:
                self._counts["not_inspected"] += 1
            else:
                inspected += 1
                await self._judge_again(row)
            judged += 1
        more = len(rows) > judged
        return PlanSimulation(
            model_version=self.model.identity.version,
            judged=judged,
            **self._counts,
            good_reviewed=dict(self._reviewed),
            parts=self._parts,
            next_before=rows[judged - 1]["id"] if more and judged else None,
        )

    def _is_certainly_good(self, row: RowMapping) -> bool:
        """Returns whether this version called the part good with the thresholds that it has now."""
        limits, identity = self.model.config.thresholds, self.model.identity
        decided = (row["version"], row["manifest_sha256"], row["threshold"], row["review_threshold"])
        now = (identity.version, identity.sha256, limits.score, limits.review)
        return bool((row["model_label"] or row["label"]) == GOOD and decided == now)

    async def _judge_again(self, row: RowMapping) -> None:
        try:
            picture = await self.record.read_picture(row)
        except RequestError as error:
            if error.status != 404:
                raise
            self._counts["deleted"] += 1
            return
        facts = {name: row[name] for name in ANSWERED_COLUMNS}
        decided = await self._judge(EncodedPhotograph(picture, f"record {row['id']}"))
        self._parts.append(SimulatedPart(record_id=row["id"], **facts, **decided))

    async def _judge(self, photograph: EncodedPhotograph) -> dict[str, Any]:
        """Returns the fields of a `SimulatedPart` with the verdict of the plan, or why there is none."""
        try:
            result = await self.inspector.inspect(self.model, photograph, as_served=True)
            if result.prediction is None:
                return self._without_verdict(result.unlike or "")
            unlike = result.unlike is not None
            judgement = await asyncio.to_thread(self.judge.judge, result.prediction, unlike=unlike)
        except (ImageError, RequestError) as error:
            if isinstance(error, RequestError) and error.status not in PHOTOGRAPH_STATUSES:
                raise
            return self._without_verdict(str(error))
        verdict = make_verdict(judgement, self.judge.plan)
        return {"new_label": judgement.label, "problem": "", "verdict": verdict}

    @staticmethod
    def _without_verdict(problem: str) -> dict[str, Any]:
        return {"new_label": NOT_INSPECTED, "problem": problem, "verdict": None}


def _read_rows(
    connection: Connection, model: ServedModel, station: str | None, before: int | None, limit: int
) -> Sequence[RowMapping]:
    table = inspections.c
    statement = with_pictures([table[name] for name in COLUMN_NAMES]).order_by(table.id.desc()).limit(limit)
    conditions: list[Any] = [*equal(inspections, model=model.identity.name, station=station)]
    if before is not None:
        conditions.append(table.id < before)
    return connection.execute(statement.where(*conditions)).mappings().all()
