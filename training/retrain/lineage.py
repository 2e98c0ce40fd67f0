"""Which model a run became, and what the next version of it is called."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from segdec.artifact import MANIFEST, Manifest, Parent, check_writable, manifest_sha256, open_artifact
from segdec.errors import ArtifactError, ConfigError
from training.run.folder import RunFolder

MODELS = Path("models")
"""Where a model is looked for that nobody names: where `fit` writes it."""


@dataclass(frozen=True)
class Lineage:
    """A model and the version that is to follow it.

    Attributes:
        name: Of the model.
        version: Of the new one.
        parent: The former one.
        out: Folder of the new one.
        engines: That the former one has, the preferred one first.
    """

    name: str
    version: str
    parent: Parent
    out: Path
    engines: tuple[str, ...]


def find_lineage(run: RunFolder, model: Path | None, version: str | None, out: Path | None) -> Lineage:
    """Finds what the next version of a run's model is called, and where it goes.

    Args:
        run: A finished one.
        model: The model that it became; None = looked for below `models`.
        version: Of the next one; None = one higher.
        out: Folder of the next one; None = beside the former one.

    Raises:
        ArtifactError: If there is no such model, or the next one cannot be written.
        ConfigError: If the version is no number to count on from.
    """
    place = _find(run) if model is None else model
    former = open_artifact(place).manifest
    if not _is_of(former, run):
        raise ArtifactError(
            f"{place} was not exported from {run.path}: it was trained on other photographs. Expected the "
            "model that the run became."
        )
    version = version or _next(former)
    if version == former.version:
        raise ConfigError(f"--version {version} is that of the model in {place}. Expected another one.")
    out = out or _beside(place, former, version)
    if out.exists():
        raise ArtifactError(f"{out} exists. Expected a new folder: give another --version or --out.")
    check_writable(out, overwrite=False)
    parent = Parent(version=former.version, sha256=manifest_sha256(place))
    return Lineage(former.name, version, parent, out, tuple(former.variants))


def _find(run: RunFolder) -> Path:
    """The newest model below `models` that was exported from the run."""
    found = [
        place for place in _candidates(run.path.resolve().name) if _is_of(open_artifact(place).manifest, run)
    ]
    if not found:
        raise ArtifactError(
            f"No model of the run {run.path} lies in {MODELS / run.path.resolve().name}. Name the one that "
            f"it became with --parent MODEL, or export it: python -m training export {run.path} MODEL."
        )
    return max(found, key=lambda place: (place / MANIFEST).stat().st_mtime)


def _candidates(name: str) -> Iterator[Path]:
    place = MODELS / name
    yield from (path.parent for path in (place / MANIFEST, *place.glob(f"*/{MANIFEST}")) if path.is_file())


def _is_of(manifest: Manifest, run: RunFolder) -> bool:
    return manifest.data_fingerprint == run.result().data_fingerprint


def _next(former: Manifest) -> str:
    if not former.version.isdecimal():
        raise ConfigError(
            f"The model {former.name} has the version '{former.version}', which is no number to count on "
            "from. Name the next one with --version."
        )
    return str(int(former.version) + 1)


def _beside(place: Path, former: Manifest, version: str) -> Path:
    """`NAME/2` beside `NAME/1`, as a service has several; else `NAME_2`."""
    place = place.resolve()
    return place.with_name(version if place.name == former.version else f"{place.name}_{version}")
