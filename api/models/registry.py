"""The served models: found by name and version, replaced while requests continue."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self

from api.errors import RequestError
from api.inference.inference_thread import ImagePredictor
from api.inference.memory_budget import LargestPhotograph, MemoryBudget
from api.inference.network_cost import NetworkCost
from api.models.active_plans import OTHER_STATIONS, ActivePlan, ActivePlans, describe_plans
from api.models.aliases import CANDIDATE
from api.models.confirmations import Confirmations
from api.models.thresholds import ThresholdOverride
from segdec.artifact import STABLE, Manifest
from segdec.config import ModelConfig, Thresholds
from segdec.photograph_check import PhotographLimits
from segdec.schemas import ModelDetail, ModelIdentity, ThresholdsInUse


@dataclass(eq=False)
class Usage:
    """Number of requests that use a model: each block of a `with` statement is one."""

    count: int = 0
    idle: asyncio.Event = field(default_factory=asyncio.Event)

    def __enter__(self) -> Self:
        self.count += 1
        return self

    def __exit__(self, *failure: object) -> None:
        self.count -= 1
        if not self.count:
            self.idle.set()


@dataclass(frozen=True)
class ServedModel:
    """A version of a model that answers requests.

    Attributes:
        own_config: The configuration of the model itself, if it was changed; else None.
        thresholds: Replace those of its manifest; None: they do not.
        confirmed: Widen the limits of its manifest; None: nothing is confirmed.
        plans: Decide about its predictions.
        folder: That of the artifact; None for a model in memory.
        signed_by: The trusted key that signed it; None if no signature is required.
    """

    identity: ModelIdentity
    aliases: tuple[str, ...]
    predictor: ImagePredictor
    cost: NetworkCost = field(default_factory=NetworkCost)
    usage: Usage = field(default_factory=Usage, repr=False)
    own_config: ModelConfig | None = None
    thresholds: ThresholdOverride | None = None
    confirmed: Confirmations | None = None
    plans: ActivePlans = field(default_factory=dict, repr=False)
    folder: Path | None = None
    signed_by: str | None = None

    @property
    def config(self) -> ModelConfig:
        """The configuration in use."""
        return self.predictor.config

    @property
    def own_thresholds(self) -> Thresholds:
        """The thresholds of the model itself."""
        return (self.own_config or self.config).thresholds

    def plan_at(self, station: str) -> ActivePlan | None:
        """Returns the inspection plan that decides at a station; None: the model decides."""
        return self.plans.get(station, self.plans.get(OTHER_STATIONS))

    def with_changes(
        self, thresholds: ThresholdOverride | None, confirmed: Confirmations | None
    ) -> "ServedModel":
        """Returns this version with other thresholds and limits, or with its own ones: the same network and
        usage.

        Raises:
            ArtifactError: If the confirmed photographs do not fit the model.
        """
        own = self.own_config or self.config
        config = own if confirmed is None else confirmed.widen(own)
        if thresholds is not None:
            used = {"score": thresholds.score, "review": thresholds.review}
            config = config.model_copy(update={"thresholds": own.thresholds.model_copy(update=used)})
        predictor = self.predictor if config == self.config else self.predictor.with_config(config)
        changed = thresholds is not None or confirmed is not None
        own_config = own if changed else None
        return replace(
            self, predictor=predictor, own_config=own_config, thresholds=thresholds, confirmed=confirmed
        )

    def largest_in(self, memory: MemoryBudget) -> LargestPhotograph:
        """Returns the largest photograph that it accepts."""
        return memory.largest(self.cost, has_plan=bool(self.plans))

    def describe(self, memory: MemoryBudget) -> ModelDetail:
        """Returns what a list of models tells; `memory` is for all photographs."""
        largest = self.largest_in(memory)
        used = self.config.thresholds
        manifest = self.own_config or self.config
        return ModelDetail(
            **self.identity.model_dump(),
            aliases=list(self.aliases),
            signed_by=self.signed_by,
            manifest=manifest.model_dump(mode="json"),
            thresholds=ThresholdsInUse(
                score=used.score, review=used.review, of_model=self.thresholds is None
            ),
            confirmed=None if self.confirmed is None else self.confirmed.describe(),
            plans=describe_plans(self.plans),
            max_pixels=largest.pixels,
            limited_by=largest.limited_by,
        )

    def release_memory(self) -> None:
        """Releases the memory that the engine keeps for large photographs."""
        getattr(self.predictor, "release_memory", lambda: None)()

    async def wait_until_unused(self) -> None:
        while self.usage.count:
            self.usage.idle.clear()
            await self.usage.idle.wait()


Versions = Mapping[str, ServedModel]
"""Version → model, for one name."""


class ModelRegistry:
    """Finds models. They are in one table that is replaced as a whole: no request sees half a change."""

    def __init__(self, default: str | None) -> None:
        self.default = default
        self._table: Mapping[str, Versions] = {}

    def all(self) -> list[ServedModel]:
        """Returns every version of every model."""
        return [model for versions in self._table.values() for model in versions.values()]

    def versions(self, name: str) -> Versions:
        """Returns the served versions of the model `name`; empty if there are none."""
        return self._table.get(name, {})

    def find(self, name: str | None = None, version: str | None = None) -> ServedModel:
        """Finds a model by name (None: the default) and version or alias (None: the stable one).

        Raises:
            RequestError: 404 if there is no such model or version.
        """
        if not self._table:
            detail = "No model is served yet. Train one, or put one into the folder of models and reload it."
            raise RequestError(404, "model_not_found", detail)
        chosen = name or self._default()
        versions = self.versions(chosen)
        if not versions:
            detail = f"No model '{chosen}' is served. Expected one of: {_quoted(self._table)}."
            raise RequestError(404, "model_not_found", detail)
        if version is None:
            return _stable(versions)
        aliases = {alias: model for model in versions.values() for alias in model.aliases}
        model = versions.get(version) or aliases.get(version)
        if model is None:
            detail = (
                f"Model '{chosen}' has no version or alias '{version}'. "
                f"Expected one of: {_quoted([*versions, *aliases])}."
            )
            raise RequestError(404, "version_not_found", detail)
        return model

    def find_limits(self, identity: ModelIdentity) -> PhotographLimits | None:
        """Returns the limits by which a stable version decides now whether a photograph is like those of the
        training; None if it has none, or is not stable.
        """
        model = self.versions(identity.name).get(identity.version)
        if model is None or model.identity != identity or STABLE not in model.aliases:
            return None
        trained = model.config.training_photographs if isinstance(model.config, Manifest) else None
        return None if trained is None else trained.limits

    def candidate(self, name: str) -> ServedModel | None:
        """Returns the candidate of the model `name`; None if it has none."""
        versions = self.versions(name).values()
        named = (model for model in versions if CANDIDATE in model.aliases)
        return next((model for model in named if STABLE not in model.aliases), None)

    def candidates(self) -> list[tuple[ServedModel, ServedModel]]:
        """Returns the candidates of all models, each with the stable version."""
        pairs = [(self.candidate(name), _stable(versions)) for name, versions in self._table.items()]
        return [(candidate, stable) for candidate, stable in pairs if candidate is not None]

    def replace(self, name: str, versions: Versions) -> None:
        """Serves `versions` under `name` from now on; an empty mapping removes the name."""
        others = {other: served for other, served in self._table.items() if other != name}
        self._table = {**others, name: versions} if versions else others

    def _default(self) -> str:
        if self.default is not None:
            return self.default
        if len(self._table) == 1:
            return next(iter(self._table))
        detail = (
            f"Several models are served: {_quoted(self._table)}. Name one: /v1/models/NAME/predict "
            "(or start the service with --default-model NAME)."
        )
        raise RequestError(404, "no_default_model", detail)


def _stable(versions: Versions) -> ServedModel:
    return next(model for model in versions.values() if STABLE in model.aliases)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
