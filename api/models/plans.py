"""Stored versions of inspection plans, beside the versions of a model; a version never changes."""

import hashlib
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_serializer

from api.errors import RequestError
from api.models.file_update import damaged_file, read_if_exists
from segdec.errors import ArtifactError
from segdec.plan.inspection_plan import Plan
from segdec.runtime.files import create_bytes_atomic

PLANS = "plans"
"""Folder beside the versions of a model: `plans/3.json` is version 3."""
MAX_PLANS = 1000
"""Versions for one model."""
PlanNumber = Annotated[int, Field(ge=1, le=MAX_PLANS)]


class PlanVersion(BaseModel):
    """A version of an inspection plan, as it is stored.

    Attributes:
        number: 1 for the first one of the model, whatever its name.
        author: The person or API key that sent it.
        reason: What the author says about it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    number: PlanNumber
    created_at: datetime
    author: str
    reason: str
    plan: Plan

    @field_serializer("plan")
    def _dump_plan(self, plan: Plan) -> dict[str, object]:
        return plan.to_dict()


@dataclass(frozen=True)
class StoredPlan:
    """A version with the SHA-256 of its file, which also identifies it where numbers are the same."""

    version: PlanVersion
    sha256: str


@dataclass(frozen=True)
class NewPlan:
    """A version that is not written yet, and the content of its file."""

    path: Path
    version: PlanVersion
    content: bytes

    @property
    def stored(self) -> StoredPlan:
        """The version after `write`."""
        return StoredPlan(self.version, hashlib.sha256(self.content).hexdigest())

    def write(self) -> None:
        """Writes the file.

        Raises:
            RequestError: 409 if it cannot be written, or another version got its number meanwhile.
        """
        self._create_folder()
        try:
            create_bytes_atomic(self.path, self.content)
        except FileExistsError as error:
            raise RequestError(
                409, "plans_changed", "Another plan was stored meanwhile. Send the request again."
            ) from error
        except OSError as error:
            raise self._not_writable(error) from error

    def _create_folder(self) -> None:
        try:
            self.path.parent.mkdir(exist_ok=True)
        except OSError as error:
            raise self._not_writable(error) from error

    def _not_writable(self, error: OSError) -> RequestError:
        return RequestError(
            409,
            "plans_fixed",
            f"{self.path} cannot be written: {error.strerror}. Expected a folder where the service may "
            "write, on a file system with hard links.",
        )

    def undo(self) -> None:
        """Removes the file."""
        self.path.unlink(missing_ok=True)


class PlanFolder:
    """The versions of plans in `folder`, which may be missing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def numbers(self) -> list[int]:
        """Returns the numbers of all versions, ascending."""
        names = (path.stem for path in self.folder.glob("*.json"))
        numbers = (int(name) for name in names if re.fullmatch("[1-9][0-9]{0,3}", name))
        return sorted(number for number in numbers if number <= MAX_PLANS)

    def check_exists(self, number: int) -> None:
        """Raises a RequestError, 404, if there is no version `number`."""
        count = len(numbers := self.numbers())
        if number not in numbers:
            raise RequestError(
                404,
                "plan_not_found",
                "There is no plan {number}. Number of plans that are stored for this model: {count}.",
                number=number,
                count=count,
            )

    def read(self, number: int) -> StoredPlan:
        """Reads a version.

        Raises:
            ArtifactError: If it is missing or damaged.
        """
        path = self.folder / f"{number}.json"
        content = read_if_exists(path)
        expected = "Restore the file: without it, no photograph is inspected by this plan."
        if content is None:
            raise ArtifactError(f"{path} is missing. {expected}")
        try:
            version = PlanVersion.model_validate_json(content)
        except ValidationError as error:
            raise damaged_file(path, error, expected) from error
        if version.number != number:
            raise ArtifactError(f"{path} has version {version.number} of the plan. {expected}")
        return StoredPlan(version, hashlib.sha256(content).hexdigest())

    def prepare(self, plan: Plan, author: str, reason: str, now: datetime) -> NewPlan | StoredPlan:
        """Returns a new version to be written; the newest one if the same author sends it again.

        Raises:
            RequestError: 409 if there are too many.
        """
        newest = max(self.numbers(), default=0)
        if newest:
            with suppress(ArtifactError):  # a damaged one is not the same
                stored = self.read(newest)
                known = stored.version
                if (known.plan, known.author, known.reason) == (plan, author, reason):
                    return stored
        if newest >= MAX_PLANS:
            raise RequestError(
                409,
                "too_many_plans",
                "There are {limit} plans for this model. No more can be stored.",
                limit=MAX_PLANS,
            )
        version = PlanVersion(number=newest + 1, created_at=now, author=author, reason=reason, plan=plan)
        content = f"{version.model_dump_json(indent=1)}\n".encode()
        return NewPlan(self.folder / f"{version.number}.json", version, content)
