"""Which version of an inspection plan decides at each station."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, TypeAdapter

from api.errors import RequestError
from api.models.aliases import PREVIOUS
from api.models.file_update import FileUpdate, Sha256, parse_versions
from api.models.plans import PlanFolder, PlanNumber, StoredPlan
from segdec.artifact import STABLE
from segdec.config import ModelConfig
from segdec.errors import ArtifactError, ConfigError
from segdec.plan.inspection_plan import Plan
from segdec.plan.judgement import PlanJudge
from segdec.schemas import ActivePlanAnswer, ModelIdentity

ACTIVE_PLANS = "active_plans.json"
"""File beside the versions of a model."""
MAX_ACTIVE = 20
"""Versions of plans that are active at the same time: each needs about 7 bytes of memory per pixel, for each
version of the model.
"""
MAX_STATIONS = 500
OTHER_STATIONS = ""
"""Stands for all stations that have no plan of their own, and for requests without a station."""


class PlanReference(BaseModel):
    """A stored version of a plan; `sha256` is that of its file, which must not change."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: PlanNumber
    sha256: Sha256


PlanReferences = Mapping[str, PlanReference]
"""Station → version of its plan."""
_REFERENCES = TypeAdapter(dict[str, PlanReference])


def parse_active_plans(path: Path, content: bytes | None) -> dict[str, PlanReference]:
    """Parses station → version from the content of the JSON file `path`; None is a missing file.

    Raises:
        ArtifactError: If it is damaged: without the plan, other parts would be good.
    """
    expected = "Expected what the service has written. To inspect without a plan, delete the file."
    return parse_versions(_REFERENCES, path, content, expected)


def read_active_plans(folder: PlanFolder, references: PlanReferences) -> dict[str, StoredPlan]:
    """Returns station → plan, each version read once.

    Raises:
        ArtifactError: As `PlanFolder.read`, and if a file has changed.
    """
    plans = {reference: _read_unchanged(folder, reference) for reference in {*references.values()}}
    return {station: plans[reference] for station, reference in references.items()}


def _read_unchanged(folder: PlanFolder, reference: PlanReference) -> StoredPlan:
    stored = folder.read(reference.version)
    if stored.sha256 != reference.sha256:
        raise ArtifactError(
            f"{folder.folder / f'{reference.version}.json'} has changed since it was activated. Restore the "
            "file: a stored plan never changes."
        )
    return stored


# === In use ===


@dataclass(frozen=True)
class ActivePlan:
    """A version of a plan that decides about photographs of one version of a model."""

    stored: StoredPlan
    judge: PlanJudge
    config: ModelConfig

    @property
    def plan(self) -> Plan:
        """Its content."""
        return self.stored.version.plan

    @property
    def number(self) -> int:
        """Of the version."""
        return self.stored.version.number


ActivePlans = Mapping[str, ActivePlan]
"""Station → plan."""


def make_active_plans(
    stored: Mapping[str, StoredPlan], identity: ModelIdentity, config: ModelConfig, before: ActivePlans
) -> dict[str, ActivePlan]:
    """Prepares plans for a version of a model; takes seconds for large photographs.

    Those in `before` are kept if they are for the same configuration.

    Raises:
        ArtifactError: If a plan does not fit the model.
    """
    used = {plan.sha256: plan for plan in stored.values()}
    kept = {plan.stored.sha256: plan for plan in before.values() if plan.config == config}
    plans = {
        sha256: kept.get(sha256) or make_active_plan(plan, identity, config) for sha256, plan in used.items()
    }
    return {station: plans[plan.sha256] for station, plan in stored.items()}


def make_active_plan(stored: StoredPlan, identity: ModelIdentity, config: ModelConfig) -> ActivePlan:
    """Prepares one plan, as `make_active_plans`."""
    version = stored.version
    try:
        return ActivePlan(stored, PlanJudge(version.plan, config), config)
    except ConfigError as error:
        raise ArtifactError(
            f"Plan {version.number} ('{version.plan.name}') does not fit {identity.name} {identity.version}: "
            f"{error}"
        ) from error


def describe_plans(plans: ActivePlans) -> list[ActivePlanAnswer]:
    """Returns what a list of models tells about active plans."""
    return [
        ActivePlanAnswer(station=station, name=plan.plan.name, version=plan.number, sha256=plan.stored.sha256)
        for station, plan in sorted(plans.items())
    ]


# === Changes ===


@dataclass(frozen=True)
class PlanChange:
    """A change that an administrator requests.

    Attributes:
        station: Where the plan decides; empty: at all stations without a plan of their own.
        plan: The version; None: no plan of its own.
        reason: Why.
    """

    action: ClassVar[str] = "activate a plan"
    station: str
    plan: int | None
    reason: str

    def apply(self, before: PlanReferences, reference: PlanReference | None) -> dict[str, PlanReference]:
        """Returns the active versions after the change; `reference` is that of `plan`.

        Raises:
            RequestError: 409 if there are too many.
        """
        after = {station: each for station, each in before.items() if station != self.station}
        if reference is not None:
            after[self.station] = reference
        if len({*after.values()}) > MAX_ACTIVE or len(after) > MAX_STATIONS:
            raise RequestError(
                409,
                "too_many_active_plans",
                "More than {limit} versions of plans or {stations} stations would have a plan. Use one plan "
                "for several stations.",
                limit=MAX_ACTIVE,
                stations=MAX_STATIONS,
            )
        return after


@dataclass(frozen=True)
class PlanFileUpdate(FileUpdate):
    """A change of the file of active plans that is not written yet.

    Attributes:
        before: In the old file.
        after: In the new file.
        change: What changes.
        aliases: All aliases of the model.
    """

    kind: ClassVar[str] = "plans"
    before: PlanReferences
    after: PlanReferences
    change: PlanChange
    aliases: tuple[str, ...]

    @property
    def text(self) -> str:
        entries = {station: each.model_dump() for station, each in sorted(self.after.items())}
        return json.dumps(entries, indent=1) + "\n"

    @property
    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        before, after = self._state(self.before), self._state(self.after)
        return (before, after) if before == after else (before, {**after, "reason": self.change.reason})

    @property
    def required(self) -> set[str]:
        return {STABLE, *self.aliases} - {PREVIOUS}

    def _state(self, references: PlanReferences) -> dict[str, Any]:
        named = {"model": self.path.parent.name, "station": self.change.station}
        reference = references.get(self.change.station)
        return {**named, "plan": None if reference is None else reference.model_dump()}
