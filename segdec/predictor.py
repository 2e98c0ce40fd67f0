"""Predicts photographs: an engine with the model's pre- and postprocessing."""

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import (
    Artifact,
    Manifest,
    PhotographComparison,
    compare_pixels,
    compare_surface,
    open_artifact,
)
from segdec.artifact.signatures import TrustedKeys
from segdec.artifact.variants import check_versions
from segdec.config import STRIDE, ModelConfig
from segdec.engines import ENGINES, Engine, Logits, choose_engine
from segdec.errors import ArtifactError
from segdec.inference.batching import Batcher, PendingPhotograph
from segdec.inference.pipeline import Pipeline
from segdec.inference.postprocessing import Prediction, interpret
from segdec.inference.preprocessing import input_size, prepare_image
from segdec.inference.tiling import infer_tiles
from segdec.photograph_check import SURFACE

DEFAULT_SIZE = 256
"""Assumed side of a photograph for models that accept any size, px."""


class Predictor:
    """Predicts photographs, by the steps `prepare`, `infer` and `interpret`.

    Args:
        engine: Runs the network.
        config: Configuration of the model.
        batch_pixels: Limit on the pixels (B × H × W) in a batch of tiles; None: the engine's default.

    Attributes:
        config: As given.
        batch_pixels: As given, or the engine's default, beyond which batching is not faster.
        manifest: The artifact's manifest; None for a model in memory.
        engine_name: Name of the engine.

    Example:
        >>> predictor = Predictor.load(Path("runs/demo/model"))
        >>> predictor.predict([read_image(Path("part.png")).pixels])[0].label
        'good'
    """

    def __init__(
        self,
        engine: Engine,
        config: ModelConfig,
        *,
        batch_pixels: int | None = None,
        engine_name: str = "tensorflow",
    ) -> None:
        self.engine = engine
        self.config = config
        self.batch_pixels = batch_pixels or engine.batch_pixels
        self.manifest = config if isinstance(config, Manifest) else None
        self.engine_name = engine_name

    @classmethod
    def load(
        cls,
        folder: Path,
        engine: str | None = None,
        *,
        batch_pixels: int | None = None,
        threads: int | None = None,
        trusted: TrustedKeys | None = None,
    ) -> Self:
        """Checks all files of the artifact in `folder` and loads it.

        Args:
            folder: The artifact.
            engine: One of the engines that it was exported for; None: the preferred one that is installed.
            batch_pixels: As in the class.
            threads: Threads of the engine; None: all cores that the process may use.
            trusted: Public keys, one of which must have signed the artifact; None: no signature needed.

        Raises:
            ArtifactError: If the artifact is damaged, incomplete, in another format, not signed by a trusted
                key, has unexpected content, or was not exported for this engine.
            ConfigError: If the engine is unknown, or has started with another number of threads.
            MissingExtraError: If the engine's package is not installed.
        """
        artifact = open_artifact(folder, trusted)
        return cls.from_artifact(artifact, engine, batch_pixels=batch_pixels, threads=threads)

    @classmethod
    def from_artifact(
        cls,
        artifact: Artifact,
        engine: str | None = None,
        *,
        batch_pixels: int | None = None,
        threads: int | None = None,
    ) -> Self:
        """Loads an open artifact, whose signature may have been checked; see `load`."""
        manifest = artifact.manifest
        name = choose_engine(artifact.folder, manifest.engines_by_speed, engine)
        if ENGINES[name].is_installed:  # else loading raises the right error
            check_versions(name, manifest.variants[name])
        artifact.check_files(except_folder=name)
        with artifact.private_copy(name) as files:
            loaded = ENGINES[name].load(files, threads, usual_size(manifest))
        _check_surface(_check_answer(loaded, manifest, artifact.folder).surface, manifest, artifact.folder)
        return cls(loaded, manifest, batch_pixels=batch_pixels, engine_name=name)

    def with_config(self, config: ModelConfig) -> Self:
        """Returns a predictor with other thresholds or limits and the same engine; `manifest` stays."""
        other = copy.copy(self)
        other.config = config
        return other

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the artifact, and about how the engine runs on this machine."""
        of_artifact = () if self.manifest is None else self.manifest.notes
        return *of_artifact, *getattr(self.engine, "notes", ())

    def release_memory(self) -> None:
        """Frees the memory of the largest photographs, if the engine keeps it."""
        release = getattr(self.engine, "release_memory", None)
        if release is not None:
            release()

    def warmup_shape(self) -> tuple[int, int, int]:
        """Returns the likely shape [h, w, c] of prepared photographs."""
        size = input_size(self.config.input, *_usual_photograph(self.config))
        return (*size, self.config.network.input_channels)

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Converts a photograph to the network's input: uint8 [H, W, C] → [h, w, c]; see `prepare_image`."""
        return prepare_image(image, self.config.input, self.config.network.input_channels)

    def compare(self, image: NDArray[np.uint8]) -> PhotographComparison:
        """Compares a photograph with those of the training; `predict` does not."""
        prepared = self.prepare(image)
        comparison = compare_pixels(self.config, (image.shape[0], image.shape[1]), prepared)
        if comparison.refused:
            return comparison
        return compare_surface(self.config, self.infer(prepared[None]).surface_of(0), comparison)

    def infer(self, prepared: NDArray[np.uint8]) -> Logits:
        """Runs the network on prepared photographs [B, h, w, c], with the policy `tile` on their tiles."""
        if self.config.input.policy == "tile":
            logits = infer_tiles(self.engine, prepared, self.config, batch_pixels=self.batch_pixels)
        else:
            logits = self.engine.infer(prepared)
        return replace(logits, photographs=prepared) if self.config.thresholds.refine_mask else logits

    def interpret(
        self, logits: Logits, row: int, size: tuple[int, int], *, unlike: bool, threshold: float | None = None
    ) -> Prediction:
        """Returns the prediction for the photograph in `row` of a batch; `size` is height and width, px.

        `unlike` is whether it is unlike those of the training, by `compare_surface`; such a photograph is not
        good, but for review.
        """
        mask, classes = logits.mask[row], logits.classes[row]
        photograph = None if logits.photographs is None else logits.photographs[row]
        return interpret(
            mask, classes, size, self.config, threshold=threshold, unlike=unlike, photograph=photograph
        )

    def predict(
        self, images: Sequence[NDArray[np.uint8]], *, threshold: float | None = None, batch_size: int = 8
    ) -> list[Prediction]:
        """Predicts `images` in order; those of the same prepared size share batches.

        Args:
            images: Photographs, uint8 [H, W, C] each, of any sizes.
            threshold: Replaces the model's image threshold, 0…1.
            batch_size: Maximum number of images in a batch.

        Raises:
            ImageError: If a photograph does not suit the model.
            ConfigError: If `threshold` is not in 0…1.
            ValueError: If an array is not a photograph or `batch_size` is below 1.
        """
        inferred = self.infer_each(images, batch_size=batch_size)
        return [
            self.interpret(logits, row, image.shape[:2], unlike=False, threshold=threshold)
            for image, (logits, row) in zip(images, inferred, strict=True)
        ]

    def infer_each(
        self, images: Sequence[NDArray[np.uint8]], *, batch_size: int = 8
    ) -> list[tuple[Logits, int]]:
        """Prepares photographs and runs the network on them; those of the same prepared size share batches.

        Returns for each of `images`, in order, the logits of its batch and its row there, for `interpret`.
        For the arguments and errors see `predict`.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}. Expected at least 1.")
        prepared = [self.prepare(image) for image in images]
        by_shape: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for index, image in enumerate(prepared):
            by_shape[image.shape].append(index)
        inferred: dict[int, tuple[Logits, int]] = {}
        for group in by_shape.values():
            for start in range(0, len(group), batch_size):
                indices = group[start : start + batch_size]
                logits = self.infer(np.stack([prepared[index] for index in indices]))
                inferred |= {index: (logits, row) for row, index in enumerate(indices)}
        return [inferred[index] for index in range(len(images))]

    def predict_many(
        self,
        images: Iterable[NDArray[np.uint8]],
        *,
        threshold: float | None = None,
        batch_size: int | None = None,
        max_in_flight: int | None = None,
    ) -> Pipeline[Prediction]:
        """Predicts any number of `images` in order, with the steps in parallel.

        Reading from `images` (including decoding, if the iterable decodes), preprocessing, the network and
        postprocessing each have a thread. Errors are raised as `Pipeline` does.

        Args:
            images: As for `predict`, or any iterable.
            threshold: As for `predict`.
            batch_size: Limit on the photographs of the same prepared size in a batch; None: as many as the
                engine profits from, at most 8.
            max_in_flight: Limit on the photographs in memory; None: 2 batches + 3.

        Raises:
            ValueError: If `batch_size` or `max_in_flight` is below 1. Other errors as `predict`, each at the
                position of its photograph.

        Example:
            >>> with predictor.predict_many(read_image(path).pixels for path in paths) as predictions:
            ...     for path, prediction in zip(paths, predictions):
            ...         print(path, prediction.label)
        """
        batcher = Batcher(self, threshold=threshold, batch_size=batch_size)
        return Pipeline(
            map(PendingPhotograph, images),
            batcher.prepare,
            batcher.infer,
            batcher.interpret,
            max_in_flight=batcher.max_in_flight if max_in_flight is None else max_in_flight,
        )


def usual_size(config: ModelConfig) -> tuple[int, int]:
    """Returns height and width, px, of what the network usually gets: a tile, or a prepared photograph."""
    if config.input.policy == "tile":
        return config.input.size
    return input_size(config.input, *_usual_photograph(config))


def _usual_photograph(config: ModelConfig) -> tuple[int, int]:
    """Returns height and width, px, of all training photographs, else of the self-test, else 256 × 256."""
    if not isinstance(config, Manifest):
        return DEFAULT_SIZE, DEFAULT_SIZE
    if (trained := config.training_photographs) is not None:
        (height, highest), (width, widest) = trained.heights, trained.widths
        if (height, width) == (highest, widest):
            return height, width
    return config.self_test.height, config.self_test.width


def _check_answer(engine: Engine, config: ModelConfig, folder: Path) -> Logits:
    """Checks that the loaded engine's output matches the manifest, and returns it."""
    network = config.network
    height, width = getattr(engine, "size", None) or (STRIDE, STRIDE)  # others take longer at first
    try:
        logits = engine.infer(np.zeros((1, height, width, network.input_channels), np.uint8))
        shapes = logits.mask.shape, logits.classes.shape
    except Exception as error:  # engines raise any exception
        raise ArtifactError(
            f"The model in {folder} cannot run ({type(error).__name__}). Expected the network that its "
            "manifest describes; export the model again."
        ) from error
    sides = height // network.mask_stride, width // network.mask_stride
    expected = (1, *sides, network.mask_channels), (1, network.num_classes)
    if shapes != expected:
        raise ArtifactError(
            f"The model in {folder} returns mask logits {shapes[0]} and class logits {shapes[1]}. Expected "
            f"{expected[0]} and {expected[1]}, as in its manifest; export the model again."
        )
    return logits


def _check_surface(surface: NDArray[np.float32] | None, manifest: Manifest, folder: Path) -> None:
    """Checks that the output fits the limits of photographs like those of the training, if these need it."""
    trained = manifest.training_photographs
    if trained is None or trained.limits is None or SURFACE not in trained.limits.measures:
        return
    elements = len(trained.limits.measures[SURFACE].centre)
    shape = None if surface is None else surface.shape
    if shape != (1, elements):
        raise ArtifactError(
            f"The model in {folder} returns a surface of shape {shape}. Expected {(1, elements)}, "
            "as its manifest compares it with the training photographs; export the model again."
        )
