"""Where the served models lie: one artifact, or a folder NAME/VERSION/ of several."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from segdec.artifact import MANIFEST, open_artifact
from segdec.errors import ArtifactError, ConfigError

LABELS = "labels.json"
STABLE = "stable"
PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")


@dataclass(frozen=True)
class Offer:
    """What a store has of one model.

    Attributes:
        versions: Version → folder of its artifact, for the versions to be served.
        labels: Label → version, for example `{"stable": "3", "canary": "4"}`.
    """

    versions: Mapping[str, Path]
    labels: Mapping[str, str]


class ModelStore(Protocol):
    """Models on disk."""

    def names(self) -> list[str]:
        """Returns the names of the models that there are now."""

    def offer(self, name: str) -> Offer | None:
        """Returns what there is of the model `name` now; None if there is none.

        Raises:
            ArtifactError: If its folder is not as it should be.
        """


class SingleModel:
    """The artifact in one folder, under the name and version of its manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._name: str | None = None

    def names(self) -> list[str]:
        """Returns the one name, which stays the same for as long as the service runs."""
        self._name = self._name or open_artifact(self.folder).manifest.name
        return [self._name]

    def offer(self, name: str) -> Offer | None:
        """Returns its one version, labelled stable."""
        if name not in self.names():
            return None
        manifest = open_artifact(self.folder).manifest
        if manifest.name != name:
            raise ArtifactError(
                f"{self.folder} holds the model {manifest.name} now, {name} is served. Export it with "
                f"--name {name}, or start the service again."
            )
        return Offer({manifest.version: self.folder}, {STABLE: manifest.version})


class ModelFolder:
    """A folder with NAME/VERSION/ artifacts.

    `NAME/labels.json` says which versions are served and how they are called; without it the newest
    one is, as `stable`.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def names(self) -> list[str]:
        """Returns the names of the folders that hold at least one artifact."""
        try:
            folders = sorted(path for path in self.folder.iterdir() if path.is_dir())
        except OSError as error:
            raise ConfigError(
                f"--models {self.folder} cannot be read: {error.strerror}. Expected a folder NAME/VERSION/."
            ) from error
        found = [path.name for path in folders if _artifacts(path)]
        if not found:
            raise ConfigError(
                f"--models {self.folder} holds no NAME/VERSION/{MANIFEST}. Expected exported models "
                "(python -m training export RUN FOLDER/NAME/1). A single artifact is served with --model."
            )
        return found

    def offer(self, name: str) -> Offer | None:
        """Returns the labelled versions of a model, or its newest."""
        folder = self.folder / name
        artifacts = _artifacts(folder) if PLAIN_NAME.fullmatch(name) else {}
        if not artifacts:
            return None
        labels = read_labels(folder / LABELS, artifacts)
        if labels is None:
            labels = {STABLE: max(artifacts, key=_natural)}
        versions = {version: artifacts[version] for version in sorted(set(labels.values()), key=_natural)}
        for version, path in versions.items():
            _check_identity(path, name, version)
        return Offer(versions, labels)


def read_labels(path: Path, known: Mapping[str, Path]) -> dict[str, str] | None:
    """Reads label → version from a JSON file; None if there is no file.

    Raises:
        ArtifactError: If the file is damaged, or names a version that is not there.
    """
    try:
        values = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        raise ArtifactError(
            f'{path} cannot be read ({error}). Expected JSON such as {{"stable": "1"}}.'
        ) from error
    if not isinstance(values, dict) or not all(isinstance(version, str) for version in values.values()):
        raise ArtifactError(f'{path} is no table of labels. Expected JSON such as {{"stable": "1"}}.')
    if STABLE not in values:
        raise ArtifactError(
            f"{path} labels no version '{STABLE}', the one that answers when none is named. "
            f'Expected for example {{"{STABLE}": "{next(iter(known))}"}}.'
        )
    for label, version in values.items():
        if version not in known:
            raise ArtifactError(
                f"{path} gives the label '{label}' to version '{version}', which is not there. "
                f"Expected one of: {', '.join(known)}."
            )
        if label in known and label != version:
            raise ArtifactError(
                f"{path} uses '{label}' as a label, but it is a version. Choose another label."
            )
    return dict(values)


def _artifacts(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    return {path.name: path for path in sorted(folder.iterdir()) if (path / MANIFEST).is_file()}


def _natural(version: str) -> list[tuple[int, str]]:
    """Sorts 10 behind 9."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", version)
    ]


def _check_identity(folder: Path, name: str, version: str) -> None:
    manifest = open_artifact(folder).manifest
    if (manifest.name, manifest.version) != (name, version):
        raise ArtifactError(
            f"{folder} holds version {manifest.version} of {manifest.name}, by its manifest. Expected the "
            f"folder {manifest.name}/{manifest.version}: move it there, or export it with --name {name} "
            f"--version {version}."
        )
