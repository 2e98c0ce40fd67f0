"""Aliases of a model's versions: which one answers, which one is the candidate, and how aliases change."""

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
"""Alias of the version in shadow mode."""
PREVIOUS = "previous"
"""Alias of the version that was stable before the last promotion."""
EXAMPLE = 'Expected JSON such as {"stable": "1"}.'

Aliases = Mapping[str, str]
"""Alias → version."""


def parse_aliases(path: Path, content: bytes) -> dict[str, str]:
    """Parses alias → version from the content of the JSON file `path`; ignores aliases with the value null.

    Raises:
        ArtifactError: If it is damaged, or no version is stable.
    """
    try:
        values = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{path} cannot be read ({error}). {EXAMPLE}") from error
    if not isinstance(values, dict) or not all(isinstance(it, str | None) for it in values.values()):
        raise ArtifactError(f"{path} is not an object of aliases. {EXAMPLE}")
    aliases = {alias: version for alias, version in values.items() if version is not None}
    if STABLE not in aliases:
        raise ArtifactError(
            f"{path} has no alias '{STABLE}', the version that answers requests without a version. {EXAMPLE}"
        )
    return aliases


def find_alias_problems(path: Path, aliases: Aliases, known: Mapping[str, Path]) -> dict[str, str]:
    """Returns alias → reason for aliases that name an unknown version or are themselves a version."""
    problems = {}
    for alias, version in aliases.items():
        if version not in known:
            problems[alias] = (
                f"{path} gives the alias '{alias}' to version '{version}', which does not exist. "
                f"Expected one of: {', '.join(known)}."
            )
        elif alias in known and alias != version:
            problems[alias] = f"{path} uses '{alias}' as an alias, but it is a version. Choose another alias."
    return problems


# === Changes ===


@dataclass(frozen=True)
class AliasChange:
    """A change that an administrator requests: its name in log and audit, and a function aliases → aliases,
    which raises a RequestError if the change is not possible.
    """

    action: str
    apply: Callable[[Aliases], dict[str, str]]


def set_candidate(version: str | None) -> AliasChange:
    """Returns the change that makes `version` the candidate; None for no candidate."""

    def apply(aliases: Aliases) -> dict[str, str]:
        others = {alias: other for alias, other in aliases.items() if alias != CANDIDATE}
        if version is None:
            return others
        if version == aliases[STABLE]:
            raise RequestError(
                409, "already_stable", f"Version '{version}' is the stable one. Expected another version."
            )
        return {**others, CANDIDATE: version}

    return AliasChange("candidate", apply)


def _move_stable(aliases: Aliases, source: str, code: str, reason: str) -> dict[str, str]:
    """Moves the alias `stable` to the version with the alias `source`."""
    version = aliases.get(source)
    if version is None or version == aliases[STABLE]:
        raise RequestError(409, code, f"No other version has the alias '{source}'{reason}")
    return {**{alias: other for alias, other in aliases.items() if alias != source}, STABLE: version}


def _promote(aliases: Aliases) -> dict[str, str]:
    reason = '. Set it first: POST …/candidate with {"version": "2"}.'
    return {**_move_stable(aliases, CANDIDATE, "no_candidate", reason), PREVIOUS: aliases[STABLE]}


def _roll_back(aliases: Aliases) -> dict[str, str]:
    reason = (
        ", which a promotion gives to the version before it. To make any other version stable, make it the "
        "candidate and promote it."
    )
    moved = _move_stable(aliases, PREVIOUS, "no_previous", reason)
    is_stable = moved.get(CANDIDATE) == moved[STABLE]  # another candidate stays in shadow mode
    return {alias: version for alias, version in moved.items() if not (is_stable and alias == CANDIDATE)}


PROMOTE = AliasChange("promote", _promote)
"""Makes the candidate stable, and the stable version `previous`."""
ROLL_BACK = AliasChange("roll back", _roll_back)
"""Makes the previous version stable; a candidate stays, unless it is that version. A second request changes
nothing.
"""


@dataclass(frozen=True)
class AliasFileUpdate(FileUpdate):
    """A change of the file of aliases that is not written yet."""

    kind: ClassVar[str] = "aliases"
    before: Aliases
    after: Aliases

    @property
    def text(self) -> str:
        return json.dumps(self.after, indent=2) + "\n"

    @property
    def states(self) -> tuple[dict[str, Any], dict[str, Any]]:
        name = self.path.parent.name
        return {"model": name, "aliases": self.before}, {"model": name, "aliases": self.after}

    @property
    def required(self) -> set[str]:
        """The aliases that must be usable after the change: those that it sets, and the stable one."""
        changed = {alias for alias, version in self.after.items() if self.before.get(alias) != version}
        return {STABLE} | changed - {PREVIOUS}
