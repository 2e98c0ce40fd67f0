"""Where the served models lie: one artifact, or a folder NAME/VERSION/ of several."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from api.errors import RequestError
from api.models.labels import (
    LabelChange,
    LabelFileUpdate,
    Labels,
    check_labels,
    parse_labels,
    read_if_exists,
    read_labels,
)
from segdec.artifact import LABELS, MANIFEST, STABLE, open_artifact
from segdec.errors import ArtifactError, ConfigError

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

    def relabel(self, name: str, stable: str, change: LabelChange) -> tuple[Offer, LabelFileUpdate]:
        """Returns what there would be of the model `name` with other labels, and what writes them.

        Args:
            name: Of the model.
            stable: The version that answers now; it stays so where no file says which one does.
            change: Of the labels.

        Raises:
            RequestError: 404 if there is no such model or version, 409 if the change cannot be made.
            ArtifactError: If the model's folder is not as it should be.
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

    def relabel(self, name: str, stable: str, change: LabelChange) -> tuple[Offer, LabelFileUpdate]:  # noqa: ARG002
        """Refuses: one version alone has nothing to move."""
        raise RequestError(
            409,
            "labels_fixed",
            "One version is served, with --model, and there are no labels to move. Put the versions into "
            f"FOLDER/{name}/VERSION and serve them with --models FOLDER.",
        )


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
        artifacts = self._artifacts_of(name)
        if not artifacts:
            return None
        labels = read_labels(self.folder / name / LABELS, artifacts)
        return _offer(name, artifacts, labels or _newest(artifacts))

    def relabel(self, name: str, stable: str, change: LabelChange) -> tuple[Offer, LabelFileUpdate]:
        """Returns what there would be with other labels, and what writes them; as `ModelStore.relabel`."""
        artifacts = self._artifacts_of(name)
        if not artifacts:
            raise RequestError(404, "model_not_found", f"There is no model '{name}' where the models lie.")
        path = self.folder / name / LABELS
        found = read_if_exists(path)
        if found is not None:
            before = parse_labels(path, found, artifacts)
        else:
            before = {STABLE: stable} if stable in artifacts else _newest(artifacts)
        after = change.apply(before)
        _check_known(name, after, artifacts)
        check_labels(path, after, artifacts)
        update = LabelFileUpdate(path, found, before, after)
        update.check_writable()
        return _offer(name, artifacts, after), update

    def _artifacts_of(self, name: str) -> dict[str, Path]:
        return _artifacts(self.folder / name) if PLAIN_NAME.fullmatch(name) else {}


def _offer(name: str, artifacts: Mapping[str, Path], labels: Labels) -> Offer:
    versions = {version: artifacts[version] for version in sorted(set(labels.values()), key=_natural)}
    for version, path in versions.items():
        _check_identity(path, name, version)
    return Offer(versions, labels)


def _newest(artifacts: Mapping[str, Path]) -> dict[str, str]:
    return {STABLE: max(artifacts, key=_natural)}


def _check_known(name: str, labels: Labels, artifacts: Mapping[str, Path]) -> None:
    unknown = [version for version in labels.values() if version not in artifacts]
    if unknown:
        raise RequestError(
            404,
            "version_not_found",
            f"Model '{name}' has no version '{unknown[0]}' on disk. Expected one of: {', '.join(artifacts)}.",
        )


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
