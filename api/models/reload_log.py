"""One line in the log for each reload and each change of aliases: who, what, result, time."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Mapping

from api.errors import RequestError
from api.models.active_plans import describe_plans
from api.models.registry import ModelRegistry, ServedModel
from segdec.errors import SegdecError
from segdec.schemas import ReloadAnswer

logger = logging.getLogger(__name__)


async def log_reload(
    registry: ModelRegistry,
    name: str,
    requested_by: Mapping[str, str],
    reloading: Awaitable[ReloadAnswer],
    event: str = "reload",
) -> ReloadAnswer:
    """Awaits `reloading`, which replaces the model `name`, and logs the result with the client `requested_by`
    as a line with the message `event`; only an unexpected failure has a traceback.
    """
    started = time.perf_counter()
    facts: dict[str, object] = {"model": name, "before": _served(registry, name)}
    before = _states(registry, name)
    level, failure = logging.INFO, None
    try:
        done = await reloading
        facts |= {f"{step}_ms": ms for step, ms in done.timing_ms.model_dump().items()}
        facts["result"] = _result(done, before, _states(registry, name))
        return done
    except BaseException as error:
        level, failure = _severity(error)
        facts |= {"result": getattr(error, "code", type(error).__name__), "detail": str(error)}
        raise
    finally:
        facts |= {
            "after": _served(registry, name),
            "total_ms": round((time.perf_counter() - started) * 1000, 3),
        }
        logger.log(level, event, exc_info=failure, extra={**facts, **requested_by})


def _served(registry: ModelRegistry, name: str) -> str:
    """Returns the served versions with aliases and what was changed: `1 (stable), 2 (canary, score 0.4)`."""
    versions = sorted(registry.versions(name).items())
    return ", ".join(
        f"{version} ({', '.join([*model.aliases, *_changes(model)])})" for version, model in versions
    )


def _changes(model: ServedModel) -> list[str]:
    shown = []
    if (given := model.thresholds) is not None:
        shown = [f"score {given.score:g}", *([] if given.review is None else [f"review {given.review:g}"])]
    confirmed = 0 if model.confirmed is None else len(model.confirmed.photographs)
    plans = [f"plan {each.version} at '{each.station}'" for each in describe_plans(model.plans)]
    return [*shown, *([f"{confirmed} confirmed"] if confirmed else []), *plans]


def _states(registry: ModelRegistry, name: str) -> dict[str, dict[str, object]]:
    """Returns what a change can concern, each by version."""
    versions = registry.versions(name).items()
    return {
        "aliases": {version: model.aliases for version, model in versions},
        "thresholds": {version: model.thresholds for version, model in versions},
        "limits": {version: model.confirmed for version, model in versions},
        "plans": {version: describe_plans(model.plans) for version, model in versions},
    }


def _result(done: ReloadAnswer, before: Mapping[str, object], after: Mapping[str, object]) -> str:
    if done.loaded:
        return "loaded"
    if done.removed:
        return "removed"
    return next((f"{what} changed" for what in before if before[what] != after[what]), "unchanged")


def _severity(error: BaseException) -> tuple[int, BaseException | None]:
    """Returns the level of a failure's line, and the exception for the traceback."""
    if isinstance(error, asyncio.CancelledError):  # the service stops
        return logging.WARNING, None
    if not isinstance(error, RequestError):
        return logging.ERROR, error
    expected = error.__cause__ is None or isinstance(error.__cause__, SegdecError)
    level = logging.ERROR if error.code == "unusable_model" else logging.WARNING
    return level, None if expected else error.__cause__
