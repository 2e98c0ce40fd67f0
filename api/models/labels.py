"""Labels of a model's versions: which one answers, which one shadows it, and how they move."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from api.errors import RequestError
from segdec.artifact import STABLE
from segdec.errors import ArtifactError
from segdec.runtime.files import write_bytes_atomic, write_text_atomic

"""Answers whoever names no version."""
CANDIDATE = "candidate"
"""Sees what the stable one inspects, beside it."""
PREVIOUS = "previous"
"""Was stable before the last promotion."""

Labels = Mapping[str, str]
"""Label → version."""


def read_labels(path: Path, known: Mapping[str, Path]) -> dict[str, str] | None:
    """Reads label → version from a JSON file; None if there is no file.

    Raises:
        ArtifactError: If the file is damaged, or names a version that is not there.
    """
    content = read_if_exists(path)
    return None if content is None else parse_labels(path, content, known)


def parse_labels(path: Path, content: bytes, known: Mapping[str, Path]) -> dict[str, str]:
    """Reads label → version from what is in the file; raises as `read_labels`."""
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(
            f'{path} cannot be read ({error}). Expected JSON such as {{"stable": "1"}}.'
        ) from error
    if not isinstance(values, dict) or not all(isinstance(version, str) for version in values.values()):
        raise ArtifactError(f'{path} is no table of labels. Expected JSON such as {{"stable": "1"}}.')
    check_labels(path, values, known)
    return dict(values)


def read_if_exists(path: Path) -> bytes | None:
    """Returns what is in the file; None if there is no file.

    Raises:
        ArtifactError: If it cannot be read.
    """
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ArtifactError(
            f'{path} cannot be read ({error}). Expected JSON such as {{"stable": "1"}}.'
        ) from error


def check_labels(path: Path, labels: Labels, known: Mapping[str, Path]) -> None:
    """Refuses labels that cannot be served.

    Raises:
        ArtifactError: If none is stable, one names a version that is not there, or is the name of another.
    """
    if STABLE not in labels:
        raise ArtifactError(
            f"{path} labels no version '{STABLE}', the one that answers when none is named. "
            f'Expected for example {{"{STABLE}": "{next(iter(known))}"}}.'
        )
    for label, version in labels.items():
        if version not in known:
            raise ArtifactError(
                f"{path} gives the label '{label}' to version '{version}', which is not there. "
                f"Expected one of: {', '.join(known)}."
            )
        if label in known and label != version:
            raise ArtifactError(
                f"{path} uses '{label}' as a label, but it is a version. Choose another label."
            )


# === How they move ===


@dataclass(frozen=True)
class LabelChange:
    """What an administrator asks for.

    Attributes:
        what: In a word or two, for the log and the audit.
        apply: Labels → labels; raises RequestError where it cannot be done.
    """

    what: str
    apply: Callable[[Labels], dict[str, str]]


def set_candidate(version: str | None) -> LabelChange:
    """Returns the change that lets `version` shadow the stable one; None for no version any more."""

    def apply(labels: Labels) -> dict[str, str]:
        others = {label: labelled for label, labelled in labels.items() if label != CANDIDATE}
        if version is None:
            return others
        if version == labels[STABLE]:
            raise RequestError(
                409, "already_stable", f"Version '{version}' is the stable one. Expected another version."
            )
        return {**others, CANDIDATE: version}

    return LabelChange("candidate", apply)


def _promote(labels: Labels) -> dict[str, str]:
    candidate = labels.get(CANDIDATE)
    if candidate in (None, labels[STABLE]):
        raise RequestError(
            409,
            "no_candidate",
            "No other version has the label 'candidate'. Name one first: POST …/candidate with "
            '{"version": "2"}.',
        )
    others = {label: version for label, version in labels.items() if label != CANDIDATE}
    return {**others, STABLE: str(candidate), PREVIOUS: labels[STABLE]}


def _roll_back(labels: Labels) -> dict[str, str]:
    previous = labels.get(PREVIOUS)
    if previous in (None, labels[STABLE]):
        raise RequestError(
            409,
            "no_previous",
            "No other version has the label 'previous', which a promotion leaves to the version before it. "
            "Any version can be made stable: name it the candidate and promote it.",
        )
    others = {label: version for label, version in labels.items() if label != PREVIOUS}
    return {**others, STABLE: str(previous)}


PROMOTE = LabelChange("promote", _promote)
"""The candidate becomes stable, and what was stable `previous`."""
ROLL_BACK = LabelChange("roll back", _roll_back)
"""What was stable before is so again. Asked for twice, it is done once."""


# === How they are written ===


@dataclass(frozen=True)
class LabelFileUpdate:
    """Other labels for the versions of a model, not written yet.

    Attributes:
        path: Of the file.
        found: What was in it; None if there was none.
        before: The labels of then.
        after: Those to come.
    """

    path: Path
    found: bytes | None
    before: Labels
    after: Labels

    @property
    def both(self) -> tuple[Labels, Labels]:
        """The labels before and after."""
        return self.before, self.after

    def check_writable(self) -> None:
        """Refuses early, before a model is loaded for nothing.

        Raises:
            RequestError: 409 if the folder cannot be written to.
        """
        if not os.access(self.path.parent, os.W_OK):
            raise self._fixed("it is read-only")

    def write(self) -> None:
        """Writes the new labels.

        Raises:
            RequestError: 409 if the folder cannot be written to, or somebody else has changed them meanwhile.
        """
        if read_if_exists(self.path) != self.found:
            raise RequestError(
                409, "labels_changed", f"{self.path} was changed meanwhile. Look at it and ask again."
            )
        try:
            write_text_atomic(self.path, json.dumps(self.after, indent=2) + "\n")
        except OSError as error:
            raise self._fixed(str(error.strerror)) from error

    def take_back(self) -> None:
        """Puts back what was there.

        Raises:
            OSError: If that cannot be written either.
        """
        if self.found is None:
            self.path.unlink(missing_ok=True)
        else:
            write_bytes_atomic(self.path, self.found)

    def _fixed(self, why: str) -> RequestError:
        return RequestError(
            409,
            "labels_fixed",
            f"{self.path} cannot be written: {why}. Change it where the folder comes from, then reload: POST "
            "/v1/admin/models/NAME/reload.",
        )
