"""Brings a model into service: load, verify, self-test, warm up, swap, drain. A failure changes nothing."""

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Set
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from api.errors import RequestError
from api.inference.inference_thread import ImagePredictor, InferenceThread
from api.inference.memory_budget import MemoryBudget
from api.inference.network_cost import NetworkCost, measure_cost
from api.models.active_plans import PlanChange, make_active_plans
from api.models.aliases import PREVIOUS, AliasChange
from api.models.confirmations import ConfirmationChange, find_confirmations
from api.models.file_update import FileUpdate
from api.models.registry import ModelRegistry, ServedModel, Versions
from api.models.settings import ModelSettings
from api.models.store import StoredModel, open_store
from api.models.thresholds import ThresholdChange, find_override
from segdec.artifact import STABLE, Artifact, open_artifact
from segdec.artifact.signatures import TrustedKeys
from segdec.errors import ArtifactError, SegdecError
from segdec.export.self_test import run_self_test
from segdec.predictor import Predictor
from segdec.schemas import ModelIdentity, ReloadAnswer, ReloadTiming

ModelChange = AliasChange | ThresholdChange | ConfirmationChange | PlanChange
Write = Callable[[FileUpdate], Awaitable[None]]
"""Writes a file beside the versions of a model, or raises a RequestError."""
Prepare = Callable[[], tuple[StoredModel, FileUpdate]]
"""Returns what is to be served after a change, and the update of the file; runs in a thread."""

logger = logging.getLogger(__name__)


@dataclass
class LoadTimes:
    """Milliseconds of each step of loading."""

    load: float = 0.0
    self_test: float = 0.0
    warm: float = 0.0
    drain: float = 0.0


class ModelLoader:
    """Loads and replaces the models of a registry; a budget measures and checks their memory.

    Requests to a replaced model have `drain_s` seconds to end.
    """

    def __init__(
        self,
        settings: ModelSettings,
        registry: ModelRegistry,
        inference_thread: InferenceThread,
        budget: MemoryBudget,
        drain_s: float,
    ) -> None:
        self.store = open_store(settings)
        self.settings, self._drain_s = settings, drain_s
        self.registry = registry
        self.inference_thread = inference_thread
        self.budget = budget
        self._reloading: set[str] = set()

    async def load_all(self) -> LoadTimes:
        """Loads every model of the store; a version that is not stable and cannot be used is not served.

        Raises:
            SegdecError: If a stable version cannot be used.
        """
        times = LoadTimes()
        names = self.store.names()
        for reason in self.store.unserved():
            logger.warning("Not served: %s", reason)
        default = self.registry.default
        if names and default is not None and default not in names:
            raise ArtifactError(
                f"--default-model {default} does not exist. Expected one of: {', '.join(names)}."
            )
        for name in names:
            await self._load(name, times, at_start=True)
        if any(model.plans for model in self.registry.all()):  # they take memory, too
            await self.inference_thread.call(self.budget.measure_idle)
        if len(names) == 1:  # it stays the default if a reload adds others
            self.registry.default = names[0]
        return times

    async def reload(self, name: str) -> ReloadAnswer:
        """Serves the model `name` as the store has it now.

        Unchanged versions stay loaded. A replaced version still answers the requests that have started.

        Raises:
            RequestError: 404 if there is no such model, 409 while a reload of it runs, 422 if a version
                cannot be used: then nothing changes. The previous version may be unusable.
        """
        is_first = not self.registry.all()
        answer = await self._swap(name, self._load)
        if is_first and self.registry.default is None:
            self.registry.default = name
        return answer

    async def change(self, name: str, change: ModelChange, write: Write) -> ReloadAnswer:
        """Changes the aliases or active plans of the model `name`, or the thresholds or confirmed photographs
        of a served version.

        Versions that get an alias are loaded and tested before `write` writes the file: so the versions on
        disk always work, even if the service is killed in between. Requests that have started keep their
        version with its thresholds.

        Raises:
            RequestError: As `reload`, `write` and the methods of `ModelFolder`: then nothing changes; 404 if
                the version that changes is not served.
        """

        def prepare() -> tuple[StoredModel, FileUpdate]:
            stable = self.registry.find(name).identity.version
            if isinstance(change, AliasChange):
                return self.store.change_aliases(name, stable, change)
            if isinstance(change, PlanChange):
                return self.store.change_plans(name, stable, change)
            model = self.registry.find(name, change.version)
            if isinstance(change, ThresholdChange):
                return self.store.set_thresholds(model.identity, model.own_thresholds, stable, change)
            return self.store.change_confirmations(model.identity, stable, change)

        return await self._swap(name, partial(self._load_changed, prepare=prepare, write=write))

    @asynccontextmanager
    async def loaded_unserved(self, folder: Path) -> AsyncIterator[ServedModel]:
        """Yields the model in `folder`, loaded and tested as the served ones but not served.

        Its memory is part of what the process uses, and is released at the end.

        Raises:
            SegdecError: If it cannot be used, or the memory is too small for it.
        """
        try:
            yield await self._load_unserved(folder)
        finally:
            await self._release_replaced()

    async def _load_unserved(self, folder: Path) -> ServedModel:
        try:
            return await self._load_version(folder, None, LoadTimes())
        except SegdecError:
            raise
        except Exception as error:  # whatever an engine raises
            logger.exception("The model in %s cannot be run", folder)
            raise ArtifactError(_reason(error)) from error

    async def _swap(self, name: str, load: Callable[[str, LoadTimes], Awaitable[None]]) -> ReloadAnswer:
        if name in self._reloading:
            raise RequestError(
                409, "reload_running", f"A reload of '{name}' is running. Wait for its answer."
            )
        self._reloading.add(name)
        try:
            before, times = self.registry.versions(name), LoadTimes()
            await load(name, times)
            await self._drain(before, times)
        except RequestError:
            raise
        except Exception as error:  # whatever an engine raises, the models before stay
            raise RequestError(
                422, "unusable_model", f"{_reason(error)} The models before are still served."
            ) from error
        finally:
            self._reloading.discard(name)
        done = self._describe(name, before, times)
        del before
        await self._release_replaced()
        return done

    async def _release_replaced(self) -> None:
        """Releases the memory of models that nobody uses any more."""
        await asyncio.to_thread(gc.collect)  # a network has many reference cycles, and is rarely replaced
        await self.inference_thread.call(self.budget.measure_idle)

    async def _load(self, name: str, times: LoadTimes, *, at_start: bool = False) -> None:
        stored = await asyncio.to_thread(self.store.find, name)
        if stored is None:
            self._remove(name)
        else:
            required = {STABLE} if at_start else {*stored.aliases, *stored.unusable} - {PREVIOUS}
            self.registry.replace(name, await self._load_versions(name, stored, times, required))

    async def _load_changed(self, name: str, times: LoadTimes, *, prepare: Prepare, write: Write) -> None:
        stored, update = await asyncio.to_thread(prepare)
        served = await self._load_versions(name, stored, times, update.required)
        await write(update)
        self.registry.replace(name, served)

    async def _load_versions(
        self, name: str, stored: StoredModel, times: LoadTimes, required: Set[str]
    ) -> Versions:
        """Loads the versions with aliases; raises if one with a `required` alias cannot be used."""
        before = self.registry.versions(name)
        for alias, reason in stored.unusable.items():
            if alias in required:
                raise ArtifactError(reason)
            _warn_unserved(name, alias, reason)
        served = {}
        for version, folder in stored.versions.items():
            aliases = stored.aliases_of(version)
            try:
                model = await self._load_version(folder, before.get(version), times)
                changed = _with_changes(replace(model, aliases=aliases), stored)
                served[version] = await asyncio.to_thread(_with_plans, changed, stored)
            except Exception as error:  # whatever an engine raises
                if required & set(aliases):
                    raise
                for alias in aliases:
                    _warn_unserved(name, alias, _reason(error))
        return served

    def _remove(self, name: str) -> None:
        if not self.registry.versions(name):
            raise RequestError(404, "model_not_found", f"The model '{name}' is not on disk.")
        if name == self.registry.default:
            raise ArtifactError(f"The default model '{name}' is no longer on disk.")
        self.registry.replace(name, {})

    async def _load_version(self, folder: Path, before: ServedModel | None, times: LoadTimes) -> ServedModel:
        started = time.perf_counter()
        artifact = await asyncio.to_thread(self._open, folder)
        if before is not None and before.identity.sha256 == artifact.sha256:
            return replace(before, folder=folder, signed_by=artifact.signed_by)
        settings, manifest = self.settings, artifact.manifest
        load = partial(Predictor.from_artifact, batch_pixels=settings.batch_pixels, threads=settings.threads)
        predictor = await asyncio.to_thread(load, artifact, settings.engine)
        identity = ModelIdentity(name=manifest.name, version=manifest.version, sha256=artifact.sha256)
        for note in predictor.notes:
            logger.warning("%s: %s", folder, note)
        loaded = time.perf_counter()
        await self.inference_thread.call(partial(run_self_test, predictor, folder))
        tested = time.perf_counter()
        await warm_up(predictor, self.inference_thread)
        cost = await self._measure(predictor, identity)
        times.load += (loaded - started) * 1000
        times.self_test += (tested - loaded) * 1000
        times.warm += (time.perf_counter() - tested) * 1000
        return ServedModel(identity, (), predictor, cost, folder=folder, signed_by=artifact.signed_by)

    async def _measure(self, predictor: Predictor, identity: ModelIdentity) -> NetworkCost:
        cost = await measure_cost(predictor, self.inference_thread)
        await self.inference_thread.call(self.budget.measure_idle)
        largest = self.budget.largest(cost)
        logger.info(
            "%s %s: photographs of at most %d pixels, limited by %s; the network takes %.0f MiB and %.0f "
            "bytes per pixel; the process uses %.0f MiB of %.0f MiB",
            identity.name,
            identity.version,
            *largest,
            cost.base_bytes / 2**20,
            cost.bytes_per_pixel,
            self.budget.idle_bytes / 2**20,
            self.budget.limit_bytes / 2**20,
        )
        height, width, _ = predictor.warmup_shape()
        self.budget.check_model(cost, height * width)
        return cost

    def _open(self, folder: Path) -> Artifact:
        if self.settings.require_signature is None:
            return open_artifact(folder)
        # The keys are read at each load, so that they can change without a restart.
        artifact = open_artifact(folder, TrustedKeys.read(self.settings.require_signature))
        logger.info("%s is signed with the key %s", folder, artifact.signed_by)
        return artifact

    async def _drain(self, before: Mapping[str, ServedModel], times: LoadTimes) -> None:
        started = time.perf_counter()
        kept = {id(model.usage) for model in self.registry.all()}
        with suppress(TimeoutError):  # running requests keep the model until they end
            async with asyncio.timeout(self._drain_s):
                for model in before.values():
                    if id(model.usage) not in kept:
                        await model.wait_until_unused()
        times.drain = (time.perf_counter() - started) * 1000

    def _describe(self, name: str, before: Mapping[str, ServedModel], times: LoadTimes) -> ReloadAnswer:
        now = self.registry.versions(name)
        same = {v for v, model in now.items() if v in before and before[v].usage is model.usage}
        return ReloadAnswer(
            models=[model.describe(self.budget) for model in now.values()],
            loaded=[version for version in now if version not in same],
            kept=[version for version in now if version in same],
            removed=[version for version in before if version not in now],
            timing_ms=ReloadTiming(**{step: round(ms, 3) for step, ms in vars(times).items()}),
        )


async def warm_up(predictor: ImagePredictor, inference_thread: InferenceThread) -> None:
    """Runs every batch size once, so that no request waits for set-up."""
    shape = predictor.warmup_shape()
    for size in inference_thread.batch_sizes_for(predictor, shape):
        await inference_thread.call(partial(predictor.infer, np.zeros((size, *shape), np.uint8)))


def _reason(error: Exception) -> str:
    if isinstance(error, SegdecError):
        return str(error)
    return f"The model cannot be run here ({type(error).__name__}); see the log of the service."


def _warn_unserved(name: str, alias: str, reason: str) -> None:
    logger.warning("%s: the alias '%s' is not served: %s", name, alias, reason)


def _with_changes(model: ServedModel, stored: StoredModel) -> ServedModel:
    """Returns the model with the thresholds and confirmed photographs that were set for it."""
    identity = model.identity
    thresholds = find_override(stored.thresholds, identity)
    confirmed = find_confirmations(stored.confirmed, identity)
    for found, given, what in (
        (thresholds, stored.thresholds, "thresholds"),
        (confirmed, stored.confirmed, "confirmed photographs"),
    ):
        if found is None and identity.version in given:
            logger.warning(
                "%s %s: uses the values of its manifest, because the %s were set for another model of this "
                "version",
                identity.name,
                identity.version,
                what,
            )
    return model.with_changes(thresholds, confirmed)


def _with_plans(model: ServedModel, stored: StoredModel) -> ServedModel:
    """Returns the model with its inspection plans, for its configuration; takes seconds."""
    plans = make_active_plans(stored.plans, model.identity, model.config, model.plans)
    return replace(model, plans=plans)
