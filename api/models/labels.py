"""Labels of a model's versions: which one answers, which one is the candidate, and how labels change."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from api.errors import RequestError
from api.models.file_update import FileUpdate
from segdec.artifact import STABLE
from segdec.errors import ArtifactError

CANDIDATE = "candidate"
"""Label of the version in shadow mode."""
PREVIOUS = "previous"
"""Label of the version that was stable before the last promotion."""
EXAMPLE = 'Expected JSON such as {"stable": "1"}.'

Labels = Mapping[str, str]
"""Label → version."""


def parse_labels(path: Path, content: bytes) -> dict[str, str]:
    """Parses label → version from the content of the JSON file `path`; ignores labels with the value null.

    Raises:
        ArtifactError: If it is damaged, or no version is stable.
    """
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} cannot be read ({error}). {EXAMPLE}") from error
    if not isinstance(values, dict) or not all(isinstance(it, str | None) for it in values.values()):
        raise ArtifactError(f"{path} is not an object of labels. {EXAMPLE}")
    labels = {label: version for label, version in values.items() if version is not None}
    if STABLE not in labels:
        raise ArtifactError(
            f"{path} has no label '{STABLE}', the version that answers requests without a version. {EXAMPLE}"
        )
    return labels


def find_label_problems(path: Path, labels: Labels, known: Mapping[str, Path]) -> dict[str, str]:
    """Returns label → reason for labels that name an unknown version or are themselves a version."""
    problems = {}
    for label, version in labels.items():
        if version not in known:
            problems[label] = (
                f"{path} gives the label '{label}' to version '{version}', which does not exist. "
                f"Expected one of: {', '.join(known)}."
            )
        elif label in known and label != version:
            problems[label] = f"{path} uses '{label}' as a label, but it is a version. Choose another label."
    return problems


# === Changes ===


@dataclass(frozen=True)
class LabelChange:
    """A change that an administrator requests: its name in log and audit, and a function labels → labels,
    which raises a RequestError if the change is not possible.
    """

    action: str
    apply: Callable[[Labels], dict[str, str]]


def set_candidate(version: str | None) -> LabelChange:
    """Returns the change that makes `version` the candidate; None for no candidate."""

    def apply(labels: Labels) -> dict[str, str]:
        others = {label: other for label, other in labels.items() if label != CANDIDATE}
        if version is None:
            return others
        if version == labels[STABLE]:
            raise RequestError(
                409, "already_stable", f"Version '{version}' is the stable one. Expected another version."
            )
        return {**others, CANDIDATE: version}

    return LabelChange("candidate", apply)


def _move_stable(labels: Labels, source: str, code: str, reason: str) -> dict[str, str]:
    """Moves the version labelled `source` to stable."""
    version = labels.get(source)
    if version is None or version == labels[STABLE]:
        raise RequestError(409, code, f"No other version has the label '{source}'{reason}")
    return {**{label: other for label, other in labels.items() if label != source}, STABLE: version}


def _promote(labels: Labels) -> dict[str, str]:
    reason = '. Set it first: POST …/candidate with {"version": "2"}.'
    return {**_move_stable(labels, CANDIDATE, "no_candidate", reason), PREVIOUS: labels[STABLE]}


def _roll_back(labels: Labels) -> dict[str, str]:
    reason = (
        ", which a promotion gives to the version before it. To make any other version stable, make it the "
        "candidate and promote it."
    )
    moved = _move_stable(labels, PREVIOUS, "no_previous", reason)
    is_stable = moved.get(CANDIDATE) == moved[STABLE]  # another candidate stays in shadow mode
    return {label: version for label, version in moved.items() if not (is_stable and label == CANDIDATE)}


PROMOTE = LabelChange("promote", _promote)
"""Makes the candidate stable, and the stable version `previous`."""
ROLL_BACK = LabelChange("roll back", _roll_back)
"""Makes the previous version stable; a candidate stays, unless it is that version. A second request changes
nothing.
"""


@dataclass(frozen=True)
class LabelFileUpdate(FileUpdate):
    """A change of the file of labels that is not written yet."""

    kind: ClassVar[str] = "labels"
    before: Labels
    after: Labels

    @property
    def text(self) -> str:
        return json.dumps(self.after, indent=2) + "\n"

    @property
    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        name = self.path.parent.name
        return {"model": name, "labels": self.before}, {"model": name, "labels": self.after}

    @property
    def required(self) -> set[str]:
        """The labels that must be usable after the change: those that it sets, and the stable one."""
        changed = {label for label, version in self.after.items() if self.before.get(label) != version}
        return {STABLE} | changed - {PREVIOUS}
