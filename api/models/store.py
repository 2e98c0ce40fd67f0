"""Models on disk: one artifact, or several in a folder, as NAME/VERSION/ or NAME/."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NoReturn

from api.errors import RequestError
from api.models.active_plans import (
    ACTIVE_PLANS,
    PlanChange,
    PlanFileUpdate,
    PlanReference,
    PlanReferences,
    parse_active_plans,
    read_active_plans,
)
from api.models.aliases import AliasChange, Aliases, AliasFileUpdate, find_alias_problems, parse_aliases
from api.models.confirmations import (
    CONFIRMATIONS,
    ByVersion,
    ConfirmationChange,
    ConfirmationFileUpdate,
    Confirmations,
    find_confirmations,
    parse_confirmations,
)
from api.models.file_update import read_if_exists
from api.models.plans import PLANS, PlanFolder, StoredPlan
from api.models.settings import ModelSettings
from api.models.thresholds import THRESHOLDS, Overrides, ThresholdChange, ThresholdFileUpdate, parse_overrides
from segdec.artifact import ALIASES, MANIFEST, STABLE, manifest_sha256, open_artifact
from segdec.config import Thresholds
from segdec.errors import ArtifactError, ConfigError
from segdec.schemas import ModelIdentity


@dataclass(frozen=True)
class StoredModel:
    """The versions of one model on disk that are to be served.

    Attributes:
        versions: Version → folder.
        aliases: Alias → version.
        unusable: Further aliases, and why their versions cannot be served.
        thresholds: Version → thresholds that replace those of its manifest.
        confirmed: Version → photographs that widen the limits of its manifest.
        plans: Station → inspection plan.
    """

    versions: Mapping[str, Path]
    aliases: Aliases
    unusable: Mapping[str, str] = field(default_factory=dict)
    thresholds: Overrides = field(default_factory=dict)
    confirmed: ByVersion = field(default_factory=dict)
    plans: Mapping[str, StoredPlan] = field(default_factory=dict)

    def aliases_of(self, version: str) -> tuple[str, ...]:
        """Returns the aliases of a version."""
        return tuple(alias for alias, named in self.aliases.items() if named == version)


class SingleModel:
    """The artifact in one folder, under the name and version of its manifest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._name: str | None = None

    def names(self) -> list[str]:
        """Returns the one name, which stays the same while the service runs."""
        self._name = self._name or open_artifact(self.folder).manifest.name
        return [self._name]

    def unserved(self) -> list[str]:
        """Returns nothing: the one model is served."""
        return []

    def versions_of(self, name: str) -> list[str]:  # noqa: ARG002
        """Returns nothing: further versions have no place beside it."""
        return []

    def find(self, name: str) -> StoredModel | None:
        """Returns the one version, which is stable; None for another name."""
        if name not in self.names():
            return None
        manifest = open_artifact(self.folder).manifest
        if manifest.name != name:
            raise ArtifactError(
                f"{self.folder} has the model {manifest.name} now, but {name} is served. Export it with "
                f"--name {name}, or restart the service."
            )
        return StoredModel({manifest.version: self.folder}, {STABLE: manifest.version})

    def change_aliases(self, name: str, stable: str, change: AliasChange) -> NoReturn:  # noqa: ARG002
        """Raises a RequestError, 409: a single version has no aliases to change."""
        detail = (
            "A single version is served (--model): it has no aliases to change. Put the versions into "
            f"FOLDER/{name}/VERSION and serve them with --models FOLDER."
        )
        raise RequestError(409, "aliases_fixed", detail)

    def set_thresholds(
        self,
        identity: ModelIdentity,
        own: Thresholds,  # noqa: ARG002
        stable: str,  # noqa: ARG002
        change: ThresholdChange,  # noqa: ARG002
    ) -> NoReturn:
        """Raises a RequestError, 409: a single version has no place for other thresholds."""
        detail = (
            "A single version is served (--model): its thresholds are those of the model. Put it into "
            f"FOLDER/{identity.name}/{identity.version} and serve it with --models FOLDER, or change the "
            "model: python -m training calibrate RUN --threshold.score X, then export it again."
        )
        raise RequestError(409, "thresholds_fixed", detail)

    def change_confirmations(
        self,
        identity: ModelIdentity,
        stable: str,  # noqa: ARG002
        change: ConfirmationChange,  # noqa: ARG002
    ) -> NoReturn:
        """Raises a RequestError, 409: a single version has no place for confirmed photographs."""
        detail = (
            "A single version is served (--model): its limits are those of the model. Put it into "
            f"FOLDER/{identity.name}/{identity.version} and serve it with --models FOLDER."
        )
        raise RequestError(409, "confirmations_fixed", detail)

    def plans_of(self, name: str) -> NoReturn:
        """Raises a RequestError, 409: a single version has no place for plans."""
        detail = (
            "A single version is served (--model): it has no inspection plans. Put it into "
            f"FOLDER/{name}/VERSION and serve it with --models FOLDER."
        )
        raise RequestError(409, "plans_fixed", detail)

    def change_plans(self, name: str, stable: str, change: PlanChange) -> NoReturn:  # noqa: ARG002
        """Raises as `plans_of`."""
        self.plans_of(name)


class ModelFolder:
    """A folder of several artifacts, in subfolders NAME/VERSION/, or NAME/ as `fit` writes them.

    `NAME/aliases.json` lists the versions to serve with their aliases; without this file the newest version
    is served as `stable`. `NAME/thresholds.json` has thresholds that replace those of the versions,
    `NAME/confirmed.json` photographs that widen their limits. `NAME/plans` has inspection plans, and
    `NAME/active_plans.json` the one of each station.
    """

    def __init__(self, folder: Path, *, may_be_empty: bool = False) -> None:
        self.folder, self._may_be_empty = folder, may_be_empty

    def names(self) -> list[str]:
        """Returns the names of the folders that have at least one artifact.

        Raises:
            ConfigError: If there is none and the folder may not be empty, or it cannot be read.
        """
        try:
            folders = sorted(self.folder.iterdir())
        except OSError as error:
            raise ConfigError(
                f"--models {self.folder} cannot be read: {error.strerror}. Expected a folder NAME/VERSION/."
            ) from error
        names = [path.name for path in folders if self._artifacts_of(path.name)]
        if not names and not self._may_be_empty:
            reasons = " ".join(self.unserved()) or (
                "Expected exported models (python -m training export RUN FOLDER/NAME/1). Serve a single "
                "artifact with --model."
            )
            raise ConfigError(
                f"--models {self.folder} has no NAME/{MANIFEST} and no NAME/VERSION/{MANIFEST}. {reasons}"
            )
        return names

    def unserved(self) -> list[str]:
        """Returns why artifacts are not served: the folder itself, and subfolders that have another name than
        their model.
        """
        others = sorted(path.parent for path in self.folder.glob(f"*/{MANIFEST}"))
        reasons = [_other_name(path) for path in others if _is_visible(path.name) and not _is_named(path)]
        if (self.folder / MANIFEST).is_file():
            reasons.insert(0, f"{self.folder} is itself a model: serve it with --model {self.folder}.")
        return reasons

    def versions_of(self, name: str) -> list[str]:
        """Returns the versions of a model on disk, with and without aliases.

        Raises:
            ArtifactError: If a version is in the folder twice.
        """
        return list(self._artifacts_of(name))

    def find(self, name: str) -> StoredModel | None:
        """Returns the versions of a model that have aliases on disk now, or its newest version; None if there
        is none.

        Raises:
            ArtifactError: If its aliases, thresholds, confirmed photographs or active plans are damaged, or
                the stable version is missing or invalid.
        """
        artifacts = self._artifacts_of(name)
        if not artifacts:
            return None
        path = self.folder / name / ALIASES
        content = read_if_exists(path)
        aliases = _newest(artifacts) if content is None else parse_aliases(path, content)
        return self._stored_model(name, artifacts, aliases)

    def change_aliases(
        self, name: str, stable: str, change: AliasChange
    ) -> tuple[StoredModel, AliasFileUpdate]:
        """Returns the model `name` with changed aliases, and the update that writes them.

        Without a file of aliases, the version `stable`, which answers now, stays stable.

        Raises:
            RequestError: 404 if there is no such model or version, 409 if the change is not possible.
            ArtifactError: As `find`.
        """
        artifacts = self._find_artifacts(name)
        path, content, before = self._aliases(name, stable, artifacts)
        update = AliasFileUpdate(path, content, before, change.apply(before))
        for version in (update.after[alias] for alias in update.required):
            if version not in artifacts:
                detail = f"Model '{name}' has no version '{version}' on disk."
                expected = f"Expected one of: {', '.join(artifacts)}."
                raise RequestError(404, "version_not_found", f"{detail} {expected}")
        update.check_writable()
        return self._stored_model(name, artifacts, update.after), update

    def set_thresholds(
        self, identity: ModelIdentity, own: Thresholds, stable: str, change: ThresholdChange
    ) -> tuple[StoredModel, ThresholdFileUpdate]:
        """Returns the model with changed thresholds of one version, and the update that writes them.

        Args:
            identity: The served version whose thresholds change.
            own: The thresholds of its manifest.
            stable: As in `change_aliases`.
            change: The new values.

        Raises:
            RequestError: 409 if the version on disk is no longer the served one, or the file cannot be
                written.
            ArtifactError: As `find`.
        """
        stored, aliases = self._find_served(identity, stable)
        path = self.folder / identity.name / THRESHOLDS
        content = read_if_exists(path)
        before = parse_overrides(path, content)
        update = ThresholdFileUpdate(path, content, identity, own, aliases, before, change)
        update.check_writable()
        return replace(stored, thresholds=update.after), update

    def change_confirmations(
        self, identity: ModelIdentity, stable: str, change: ConfirmationChange
    ) -> tuple[StoredModel, ConfirmationFileUpdate]:
        """Returns the model with other confirmed photographs of one version, and the update that writes them.

        Arguments and errors as `set_thresholds`; RequestError as `apply` of the change, and 409 if the change
        concerns another model of the version.
        """
        if change.identity != identity:
            raise _replaced(identity)
        stored, aliases = self._find_served(identity, stable)
        path = self.folder / identity.name / CONFIRMATIONS
        content = read_if_exists(path)
        all_before = parse_confirmations(path, content)
        assert identity.sha256 is not None, "_find_served has checked it"
        before = find_confirmations(all_before, identity) or Confirmations(sha256=identity.sha256)
        update = ConfirmationFileUpdate(
            path, content, identity, aliases, all_before, before, change.apply(before)
        )
        update.check_writable()
        return replace(stored, confirmed=update.after), update

    def plans_of(self, name: str) -> PlanFolder:
        """Returns the versions of inspection plans of a model."""
        return PlanFolder(self.folder / name / PLANS)

    def change_plans(self, name: str, stable: str, change: PlanChange) -> tuple[StoredModel, PlanFileUpdate]:
        """Returns the model with other active plans, and the update that writes them.

        Raises:
            RequestError: 404 if there is no such model or version of the plan, 409 as `PlanChange.apply`, or
                if the file cannot be written.
            ArtifactError: As `find`.
        """
        artifacts = self._find_artifacts(name)
        _, _, aliases = self._aliases(name, stable, artifacts)
        path = self.folder / name / ACTIVE_PLANS
        content = read_if_exists(path)
        before = parse_active_plans(path, content)
        after = change.apply(before, self._reference_of(name, change.plan))
        update = PlanFileUpdate(path, content, before, after, change, tuple(aliases))
        update.check_writable()
        return self._stored_model(name, artifacts, aliases, after), update

    def _reference_of(self, name: str, number: int | None) -> PlanReference | None:
        if number is None:
            return None
        plans = self.plans_of(name)
        plans.check_exists(number)
        return PlanReference(version=number, sha256=plans.read(number).sha256)

    def _find_served(self, identity: ModelIdentity, stable: str) -> tuple[StoredModel, tuple[str, ...]]:
        """Returns the model on disk, and the aliases of the served version `identity`.

        Raises:
            RequestError: 409 if the version on disk is another one or has no alias.
            ArtifactError: As `find`.
        """
        name, version = identity.name, identity.version
        artifacts = self._artifacts_of(name)
        if version not in artifacts or manifest_sha256(artifacts[version]) != identity.sha256:
            raise _replaced(identity)
        _, _, aliases = self._aliases(name, stable, artifacts)
        own = tuple(alias for alias, named in aliases.items() if named == version)
        if not own:
            raise _replaced(identity)
        return self._stored_model(name, artifacts, aliases), own

    def _stored_model(
        self,
        name: str,
        artifacts: Mapping[str, Path],
        aliases: Aliases,
        active_plans: PlanReferences | None = None,
    ) -> StoredModel:
        """Returns the versions that `aliases` name; raises an ArtifactError without the stable one.

        Its plans are the `active_plans`; None: those in their file.
        """
        path = self.folder / name / ALIASES
        unusable = find_alias_problems(path, aliases, artifacts)
        for alias, version in aliases.items():
            try:
                if alias not in unusable:
                    _check_identity(artifacts[version], name, version)
            except ArtifactError as error:
                unusable[alias] = str(error)
        if STABLE in unusable:
            raise ArtifactError(unusable[STABLE])
        usable = {alias: version for alias, version in aliases.items() if alias not in unusable}
        versions = {version: artifacts[version] for version in sorted(set(usable.values()), key=_sort_key)}
        overrides, confirmed = self.folder / name / THRESHOLDS, self.folder / name / CONFIRMATIONS
        if active_plans is None:
            path = self.folder / name / ACTIVE_PLANS
            active_plans = parse_active_plans(path, read_if_exists(path))
        return StoredModel(
            versions,
            usable,
            unusable,
            parse_overrides(overrides, read_if_exists(overrides)),
            parse_confirmations(confirmed, read_if_exists(confirmed)),
            read_active_plans(self.plans_of(name), active_plans),
        )

    def _aliases(
        self, name: str, stable: str, artifacts: Mapping[str, Path]
    ) -> tuple[Path, bytes | None, Aliases]:
        """Returns the file of aliases, its content and the aliases; without it, `stable` stays stable."""
        path = self.folder / name / ALIASES
        content = read_if_exists(path)
        if content is not None:
            return path, content, parse_aliases(path, content)
        return path, None, {STABLE: stable} if stable in artifacts else _newest(artifacts)

    def _find_artifacts(self, name: str) -> dict[str, Path]:
        artifacts = self._artifacts_of(name)
        if not artifacts:
            raise RequestError(404, "model_not_found", f"The model '{name}' is not in {self.folder}.")
        return artifacts

    def _artifacts_of(self, name: str) -> dict[str, Path]:
        return _artifacts(self.folder / name) if _is_visible(name) and Path(name).name == name else {}


def open_store(settings: ModelSettings) -> SingleModel | ModelFolder:
    """Opens the models that the settings name; creates an empty folder if they may be missing.

    Raises:
        ConfigError: If the folder cannot be created.
    """
    if settings.models is not None:
        if settings.allow_no_model:
            _create(settings.models)
        return ModelFolder(settings.models, may_be_empty=settings.allow_no_model)
    assert settings.model is not None, "read_settings has checked it"
    return SingleModel(settings.model)


def _create(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--models {folder} cannot be created: {error.strerror}.") from error


def _replaced(identity: ModelIdentity) -> RequestError:
    detail = (
        f"Version '{identity.version}' of '{identity.name}' on disk is no longer the one that is served. "
        f"Reload first: POST /v1/admin/models/{identity.name}/reload."
    )
    return RequestError(409, "model_changed", detail)


def _newest(artifacts: Mapping[str, Path]) -> dict[str, str]:
    return {STABLE: max(artifacts, key=_sort_key)}


def _artifacts(folder: Path) -> dict[str, Path]:
    if not folder.is_dir():
        return {}
    folders = [path for path in sorted(folder.iterdir()) if _is_visible(path.name)]
    versions = {path.name: path for path in folders if (path / MANIFEST).is_file()}
    if (folder / MANIFEST).is_file() and _is_named(folder):
        version = open_artifact(folder).manifest.version
        if version in versions:
            raise ArtifactError(
                f"{folder} and {versions[version]} both have version {version}. Delete one of them."
            )
        versions[version] = folder
    return versions


def _is_visible(name: str) -> bool:
    """Returns whether a folder can be a model: hidden ones are of other programs, or not complete yet."""
    return bool(name) and not name.startswith(".")


def _is_named(folder: Path) -> bool:
    return open_artifact(folder).manifest.name == folder.name


def _other_name(folder: Path) -> str:
    manifest, above = open_artifact(folder).manifest, folder.parent
    if above.name == manifest.name:
        return f"{folder} is a version of {manifest.name}: serve it with --models {above.parent}."
    return (
        f"{folder} has version {manifest.version} of {manifest.name}: move it to "
        f"{above / manifest.name / manifest.version}, or export it with --name {folder.name}."
    )


def _sort_key(version: str) -> list[tuple[int, str]]:
    """Sorts version 10 after version 9."""
    return [
        (int(number), "") if number else (-1, text)
        for number, text in re.findall("([0-9]+)|([^0-9]+)", version)
    ]


def _check_identity(folder: Path, name: str, version: str) -> None:
    manifest = open_artifact(folder).manifest
    if (manifest.name, manifest.version) != (name, version):
        raise ArtifactError(
            f"{folder} has version {manifest.version} of {manifest.name} according to its manifest. Expected "
            f"the folder {manifest.name}/{manifest.version}: move it there, or export it with --name {name} "
            f"--version {version}."
        )
