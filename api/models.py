"""The served model: its identity beside the thread that runs it."""

from dataclasses import dataclass
from typing import Any

from api.inference import ImagePredictor, Inference
from api.schemas import ModelDetail, ModelIdentity
from api.settings import Settings
from segdec.artifact import Manifest, digest
from segdec.predictor import Predictor


@dataclass(frozen=True)
class ServedModel:
    """A model that requests are answered by."""

    identity: ModelIdentity
    manifest: dict[str, Any]
    inference: Inference

    def detail(self) -> ModelDetail:
        """The identity with the manifest, for the listing."""
        return ModelDetail(**self.identity.model_dump(), manifest=self.manifest)


def load_model(settings: Settings, predictor: ImagePredictor | None = None) -> ServedModel:
    """Loads the artifact in `settings.model`, or serves a `predictor` that is in memory already.

    Raises:
        ArtifactError: If the artifact is damaged, incomplete or too new.
        MissingExtraError: If what runs it is not installed.
    """
    sha256 = None
    if predictor is None:
        sha256 = digest(settings.model)
        predictor = Predictor.load(settings.model)
    manifest = predictor.config
    name, version = (manifest.name, manifest.version) if isinstance(manifest, Manifest) else ("unnamed", "0")
    identity = ModelIdentity(name=name, version=version, sha256=sha256)
    inference = Inference(predictor, queue_size=settings.queue_size, retry_after_s=settings.retry_after_s)
    return ServedModel(identity, manifest.model_dump(mode="json"), inference)
