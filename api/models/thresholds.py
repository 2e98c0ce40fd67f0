"""Thresholds that replace those of a version's manifest; the signed model itself stays as it is."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from api.models.file_update import FileUpdate, Sha256, parse_versions
from segdec.artifact import STABLE
from segdec.config import Thresholds
from segdec.schemas import ModelIdentity

THRESHOLDS = "thresholds.json"
"""File beside the versions of a model."""
EXAMPLE = 'Expected JSON such as {"1": {"sha256": "…", "score": 0.4, "review": null}}.'

Score = Annotated[float, Field(gt=0.0, lt=1.0)]


class ThresholdOverride(BaseModel):
    """Thresholds of the score that replace those of a version's manifest.

    `sha256` is that of the manifest: another model of the same version has other scores, so it keeps its own
    thresholds.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Sha256
    score: Score
    review: Score | None

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        check_order(self.score, self.review)
        return self


Overrides = Mapping[str, ThresholdOverride]
"""Version → thresholds."""
_OVERRIDES = TypeAdapter(dict[str, ThresholdOverride])


def check_order(score: float, review: float | None) -> None:
    """Raises a ValueError if `review` is not below `score`."""
    if review is not None and review >= score:
        raise ValueError(f"review={review} is not below score={score}; expected a lower one")


def parse_overrides(path: Path, content: bytes | None) -> dict[str, ThresholdOverride]:
    """Parses version → thresholds from the content of the JSON file `path`; None is a missing file.

    Raises:
        ArtifactError: If it is damaged: with the thresholds of the manifest, decisions would differ from what
            was set.
    """
    expected = f"{EXAMPLE} To use the thresholds of the models, delete the file."
    return parse_versions(_OVERRIDES, path, content, expected)


# === Changes ===


@dataclass(frozen=True)
class ThresholdChange:
    """A change that an administrator requests: thresholds of a version, or its alias; None for those of its
    manifest.
    """

    action: ClassVar[str] = "thresholds"
    version: str
    score: float | None
    review: float | None


@dataclass(frozen=True)
class ThresholdFileUpdate(FileUpdate):
    """A change of the file of thresholds that is not written yet.

    Attributes:
        identity: The version whose thresholds change.
        own: The thresholds of its manifest.
        aliases: The aliases of this version.
        before: Thresholds of all versions in the old file.
        change: The new values.
    """

    kind: ClassVar[str] = "thresholds"
    identity: ModelIdentity
    own: Thresholds
    aliases: tuple[str, ...]
    before: Overrides
    change: ThresholdChange

    @property
    def after(self) -> dict[str, ThresholdOverride]:
        """Thresholds of all versions in the new file."""
        others = {version: each for version, each in self.before.items() if version != self.identity.version}
        score, sha256 = self.change.score, self.identity.sha256
        if score is None or sha256 is None:
            return others
        override = ThresholdOverride(sha256=sha256, score=score, review=self.change.review)
        return {**others, self.identity.version: override}

    @property
    def text(self) -> str:
        entries = {version: each.model_dump() for version, each in sorted(self.after.items())}
        return json.dumps(entries, indent=2) + "\n"

    @property
    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._state(self.before), self._state(self.after)

    @property
    def required(self) -> set[str]:
        return {STABLE, *self.aliases}

    def _state(self, overrides: Overrides) -> dict[str, Any]:
        override = find_override(overrides, self.identity)
        used = self.own if override is None else override
        return {
            "model": self.identity.name,
            "version": self.identity.version,
            "score": used.score,
            "review": used.review,
            "of_model": override is None,
        }


def find_override(overrides: Overrides, identity: ModelIdentity) -> ThresholdOverride | None:
    """Returns the thresholds for a model; None if there are none, or only some for another manifest of the
    same version.
    """
    override = overrides.get(identity.version)
    return override if override is not None and override.sha256 == identity.sha256 else None
