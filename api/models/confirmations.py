"""Photographs that people confirmed as usual: they widen the limits of a version; its signed model stays."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from api.errors import RequestError
from api.models.file_update import FileUpdate, Sha256, parse_versions
from segdec.artifact import STABLE, Manifest
from segdec.config import ModelConfig
from segdec.errors import ArtifactError
from segdec.photograph_check import Numbers, decode_measures
from segdec.schemas import ConfirmationEntry, ConfirmedPhotographs, ModelIdentity

CONFIRMATIONS = "confirmed.json"
"""File beside the versions of a model."""
MAX_CONFIRMED = 200
"""Photographs of a version: a line that has changed more needs another model."""

Id = Annotated[int, Field(gt=0, lt=2**63)]
Measures = Mapping[str, Numbers]
"""Measures of a photograph that are beyond their limits, by name."""


class Confirmation(BaseModel):
    """Photographs that a person confirmed together.

    Attributes:
        number: Revision of the limits that it made.
        who: The person or API key.
        photographs: Record id → measures.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: Id
    who: str
    at: datetime
    photographs: Annotated[dict[Id, dict[str, Numbers]], Field(min_length=1)]


class Confirmations(BaseModel):
    """The confirmations of a version, the oldest first.

    Attributes:
        sha256: Of the manifest: another model of the same version has other limits.
        revision: Number of changes.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sha256: Sha256
    revision: Annotated[int, Field(ge=0, lt=2**63)] = 0
    entries: Annotated[tuple[Confirmation, ...], Field(max_length=MAX_CONFIRMED)] = ()

    @property
    def photographs(self) -> dict[int, dict[str, Numbers]]:
        """Record id → measures, of all entries."""
        return {number: measures for entry in self.entries for number, measures in entry.photographs.items()}

    def describe(self) -> ConfirmedPhotographs:
        """Returns what an answer tells about them."""
        entries = [
            ConfirmationEntry(number=each.number, who=each.who, at=each.at, records=list(each.photographs))
            for each in self.entries
        ]
        return ConfirmedPhotographs(revision=self.revision, count=len(self.photographs), entries=entries)

    def widen(self, config: ModelConfig) -> ModelConfig:
        """Returns the configuration of the version with limits that include the photographs.

        Raises:
            ArtifactError: If the measures do not fit the limits.
        """
        trained = config.training_photographs if isinstance(config, Manifest) else None
        if trained is None or trained.limits is None or not self.entries:
            return config
        try:
            limits = trained.limits.widen([decode_measures(each) for each in self.photographs.values()])
        except ValueError as error:
            raise ArtifactError(
                f"{CONFIRMATIONS} has measures that do not fit the limits of the model with the SHA-256 "
                f"{self.sha256} ({error}). Restore or delete the file."
            ) from error
        return config.model_copy(
            update={"training_photographs": trained.model_copy(update={"limits": limits})}
        )


ByVersion = Mapping[str, Confirmations]
"""Version → confirmations."""
_BY_VERSION = TypeAdapter(dict[str, Confirmations])


def parse_confirmations(path: Path, content: bytes | None) -> dict[str, Confirmations]:
    """Parses version → confirmations from the content of the JSON file `path`; None is a missing file.

    Raises:
        ArtifactError: If it is damaged: with the limits of the manifest, warnings would return.
    """
    expected = "Expected what the service has written. To use the limits of the models, delete the file."
    return parse_versions(_BY_VERSION, path, content, expected)


def find_confirmations(by_version: ByVersion, identity: ModelIdentity) -> Confirmations | None:
    """Returns the confirmations for a model; None if there are none, or only some for another manifest of the
    same version.
    """
    found = by_version.get(identity.version)
    return found if found is not None and found.sha256 == identity.sha256 else None


# === Changes ===


@dataclass(frozen=True)
class _Change:
    """A change of the confirmations of `identity`, not of another model of its version."""

    identity: ModelIdentity

    @property
    def version(self) -> str:
        return self.identity.version


@dataclass(frozen=True)
class Confirm(_Change):
    """Confirms photographs that a model inspected; those that are confirmed already are left out.

    Attributes:
        photographs: Record id → measures.
        who: The person or API key.
        at: Time of the request.
    """

    action: ClassVar[str] = "confirm"
    photographs: Mapping[int, Measures]
    who: str
    at: datetime

    def apply(self, before: Confirmations) -> Confirmations:
        """Returns the confirmations after the change.

        Raises:
            RequestError: 409 if there would be too many.
        """
        known = before.photographs
        new = {number: dict(each) for number, each in self.photographs.items() if number not in known}
        if not new:
            return before
        if len(known) + len(new) > MAX_CONFIRMED:
            raise RequestError(
                409,
                "too_many_confirmed",
                "Version '{version}' would have {count} confirmed photographs; at most {limit} are possible. "
                "The line has changed too much for this model: train another one with such photographs.",
                version=self.version,
                count=len(known) + len(new),
                limit=MAX_CONFIRMED,
            )
        number = before.revision + 1
        entry = Confirmation(number=number, who=self.who, at=self.at, photographs=new)
        return before.model_copy(update={"revision": number, "entries": (*before.entries, entry)})


@dataclass(frozen=True)
class Withdraw(_Change):
    """Withdraws the confirmation `number` of a model."""

    action: ClassVar[str] = "withdraw"
    number: int

    def apply(self, before: Confirmations) -> Confirmations:
        """Returns the confirmations after the change.

        Raises:
            RequestError: 404 if there is no such confirmation.
        """
        others = tuple(entry for entry in before.entries if entry.number != self.number)
        if len(others) == len(before.entries):
            raise RequestError(
                404,
                "confirmation_not_found",
                "Version '{version}' has no confirmation {number}. It may have been withdrawn already.",
                version=self.version,
                number=self.number,
            )
        return before.model_copy(update={"revision": before.revision + 1, "entries": others})


ConfirmationChange = Confirm | Withdraw


@dataclass(frozen=True)
class ConfirmationFileUpdate(FileUpdate):
    """A change of the file of confirmations that is not written yet.

    Attributes:
        identity: The version whose confirmations change.
        aliases: The aliases of this version.
        others: Confirmations of all versions in the old file.
        before: Those of this version.
        changed: Those of this version after the change.
    """

    kind: ClassVar[str] = "confirmations"
    identity: ModelIdentity
    aliases: tuple[str, ...]
    others: ByVersion
    before: Confirmations
    changed: Confirmations

    @property
    def after(self) -> dict[str, Confirmations]:
        """Confirmations of all versions in the new file."""
        return {**self.others, self.identity.version: self.changed}

    @property
    def text(self) -> str:
        entries = {version: each.model_dump(mode="json") for version, each in sorted(self.after.items())}
        return json.dumps(entries, indent=1) + "\n"

    @property
    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._state(self.before), self._state(self.changed)

    @property
    def required(self) -> set[str]:
        return {STABLE, *self.aliases}

    def _state(self, confirmations: Confirmations) -> dict[str, Any]:
        return {
            "model": self.identity.name,
            "version": self.identity.version,
            "revision": confirmations.revision,
            "records": list(confirmations.photographs),
        }
