"""The model that was exported from a run, and its next version."""

from dataclasses import dataclass
from pathlib import Path

from segdec.artifact import MANIFEST, Manifest, Parent, check_writable, manifest_sha256, open_artifact
from segdec.errors import ArtifactError, ConfigError
from training.run.folder import RunFolder

MODELS = Path("models")
"""Default folder of models, in which `fit` writes them."""


@dataclass(frozen=True)
class Lineage:
    """A model, its current version `parent`, and its next version; `engines` has the preferred one first."""

    name: str
    version: str
    parent: Parent
    out: Path
    engines: tuple[str, ...]

    @property
    def is_versioned(self) -> bool:
        """Whether the models are in the layout of a service with several versions."""
        return self.out.name == self.version


def find_lineage(run: RunFolder, model: Path | None, version: str | None, out: Path | None) -> Lineage:
    """Finds the model of a finished run, and determines its next version.

    Without `model` it is searched in `models`. By default `version` is the current one plus 1 and
    `out` a new folder beside that of the current version.

    Raises:
        ArtifactError: If there is no such model, or the next version cannot be written.
        ConfigError: If the current version is not an integer and no version is given.
    """
    place = _find(run) if model is None else model
    former = open_artifact(place).manifest
    if not _is_of(former, run):
        raise ArtifactError(
            f"{place} was not exported from {run.path}: it was trained on other photographs. Expected the "
            "model of this run."
        )
    version = version or _next(former)
    if version == former.version:
        raise ConfigError(
            f"--version {version} is the version of the model in {place}. Expected another one."
        )
    out = out or _beside(place, former, version)
    if out.exists():
        raise ArtifactError(f"{out} exists. Expected a new folder: give another --version or --out.")
    check_writable(out, overwrite=False)
    parent = Parent(version=former.version, sha256=manifest_sha256(place))
    return Lineage(former.name, version, parent, out, tuple(former.variants))


def _find(run: RunFolder) -> Path:
    """The newest model in `models` that was exported from the run."""
    models = MODELS / run.path.resolve().name
    manifests = [path for path in (models / MANIFEST, *models.glob(f"*/{MANIFEST}")) if path.is_file()]
    exported = [path for path in manifests if _is_of(open_artifact(path.parent).manifest, run)]
    if not exported:
        raise ArtifactError(
            f"No model of the run {run.path} is in {models}. Give it with --parent MODEL, or export it: "
            f"python -m training export {run.path} MODEL."
        )
    return max(exported, key=lambda path: path.stat().st_mtime).parent


def _is_of(manifest: Manifest, run: RunFolder) -> bool:
    return manifest.data_fingerprint == run.result().data_fingerprint


def _next(former: Manifest) -> str:
    if not former.version.isascii() or not former.version.isdecimal():
        raise ConfigError(
            f"The version '{former.version}' of the model {former.name} is not an integer. Give the next one "
            "with --version."
        )
    return str(int(former.version) + 1)


def _beside(place: Path, former: Manifest, version: str) -> Path:
    """`NAME/2` for `NAME/1`, the layout of a service with several versions; else `NAME_2`."""
    place = place.resolve()
    return place.with_name(version if place.name == former.version else f"{place.name}_{version}")
