"""A folder of models whose versions are stubs, so that aliases and versions move without an engine."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pytest import MonkeyPatch

from api.inference.network_cost import NetworkCost
from api.models import loader, store
from segdec.artifact import MANIFEST, manifest_sha256
from tests.api.conftest import StubPredictor

NAME = "parts"


class StubModels:
    """The folder that the service reads, and the predictors of its versions.

    Attributes:
        folder: For `--models`.
        predictors: By version.
        broken: Versions whose self-test fails.
        loaded: Versions that were loaded, in order.
    """

    def __init__(self, folder: Path, monkeypatch: MonkeyPatch) -> None:
        self.folder = folder
        self.predictors: dict[str, StubPredictor] = {}
        self.broken: set[str] = set()
        self.loaded: list[str] = []
        monkeypatch.setattr(store, "_check_identity", lambda *_: None)
        monkeypatch.setattr(loader, "open_artifact", self._open)
        monkeypatch.setattr(loader, "Predictor", SimpleNamespace(from_artifact=self._load))
        monkeypatch.setattr(loader, "run_self_test", self._test)
        monkeypatch.setattr(loader, "measure_cost", self._measure)
        monkeypatch.setattr(loader, "gc", SimpleNamespace(collect=lambda: 0))

    def put(self, version: str, name: str = NAME) -> StubPredictor:
        """Adds a version; returns what runs it, under every name."""
        place = self.folder / name / version
        place.mkdir(parents=True)
        (place / MANIFEST).write_text(json.dumps({"version": version}))
        predictor = self.predictors.setdefault(version, StubPredictor())
        predictor.notes = ()
        return predictor

    @property
    def aliases(self) -> dict[str, str] | None:
        """What the file says; None if there is none."""
        path = self.folder / NAME / "aliases.json"
        return json.loads(path.read_bytes()) if path.exists() else None

    def set_aliases(self, **aliases: str) -> None:
        """Writes the file by hand."""
        (self.folder / NAME / "aliases.json").write_text(json.dumps(aliases))

    def _open(self, folder: Path) -> Any:
        name, version = folder.parts[-2:]
        return SimpleNamespace(
            manifest=SimpleNamespace(name=name, version=version),
            sha256=manifest_sha256(folder),
            signed_by="a1b2",
        )

    def _load(self, artifact: Any, *_: object, **__: object) -> StubPredictor:
        self.loaded.append(artifact.manifest.version)
        return self.predictors[artifact.manifest.version]

    async def _measure(self, *_: object) -> NetworkCost:
        return NetworkCost()

    def _test(self, _: object, folder: Path) -> None:
        if folder.name in self.broken:
            raise loader.ArtifactError(f"The self-test of {folder.name} failed.")
