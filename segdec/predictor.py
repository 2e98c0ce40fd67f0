"""Photographs in, predictions out: an engine with its model's pre- and postprocessing around it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import Artifact, Manifest, open_artifact
from segdec.artifact.signatures import TrustedKeys
from segdec.artifact.variants import check_versions
from segdec.config import STRIDE, ModelConfig
from segdec.engines import ENGINES, Engine, Logits, check_engine, choose_engine
from segdec.errors import ArtifactError
from segdec.inference.batching import Batcher, PendingPhotograph
from segdec.inference.pipeline import Pipeline
from segdec.inference.postprocessing import Prediction, interpret
from segdec.inference.preprocessing import input_size, prepare_image
from segdec.inference.tiling import infer_tiles

DEFAULT_SIZE = 256
"""Side of the photograph that stands for those of a model which takes any size, px."""


class Predictor:
    """Answers photographs with predictions.

    `predict` does it all, and `predict_many` for any number, one step beside another; `prepare`, `infer` and
    `interpret` are the steps.

    Args:
        engine: Runs the network.
        config: What the model is.
        batch_pixels: Most pixels (B × H × W) in a batch of tiles; None for what the engine advises.

    Attributes:
        config: As given.
        batch_pixels: As given, else as the engine advises: a larger batch is not faster than its images one
            by one.
        manifest: The artifact's manifest; None for a model that was never an artifact.
        engine_name: Which of the artifact's engines it is.

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
        """Loads the artifact in `folder` after checking all of its files.

        Args:
            folder: The artifact.
            engine: One of those that it was exported for; None for the preferred one that is installed.
            batch_pixels: As in the class.
            threads: Of the engine; None for its own choice, all cores that the process may use.
            trusted: Keys of which one must have signed it; None if nobody need.

        Raises:
            ArtifactError: If the artifact is damaged, incomplete, of another format, not signed by a trusted
                key, holds what no export writes, or is not for this engine.
            ConfigError: If there is no such engine, or it has started with another number of threads.
            MissingExtraError: If the engine's package is not installed.
        """
        if engine is not None:
            check_engine(engine)
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
        """Loads an artifact that was opened, and perhaps its signature checked; see `load`."""
        manifest = artifact.manifest
        name = choose_engine(artifact.folder, manifest.preference, engine)
        if ENGINES[name].is_installed:  # else loading says what to install
            check_versions(name, manifest.variants[name])
        artifact.check_files(except_folder=name)
        with artifact.private_copy(name) as files:
            loaded = ENGINES[name].load(files, threads)
        _check_answer(loaded, manifest, artifact.folder)
        return cls(loaded, manifest, batch_pixels=batch_pixels, engine_name=name)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user must know of how the engine runs on this machine; mostly nothing."""
        return tuple(getattr(self.engine, "notes", ()))

    def release_memory(self) -> None:
        """Frees what the largest photographs took, where the engine keeps it; the next ones take it anew."""
        release = getattr(self.engine, "release_memory", None)
        if release is not None:
            release()

    def warmup_shape(self) -> tuple[int, int, int]:
        """Returns the shape [h, w, c] of the prepared photograph that is likely to come first.

        The policies `resize` and `letterbox` know only one; `native` and `tile` take that of the self-test's
        photograph, else of one of 256 × 256 px.
        """
        test = self.manifest.self_test if self.manifest else None
        size = (test.height, test.width) if test else (DEFAULT_SIZE, DEFAULT_SIZE)
        return (*input_size(self.config.input, *size), self.config.network.input_channels)

    def prepare(self, image: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Fits a photograph to the network: uint8 [H, W, C] → [h, w, c].

        Raises:
            ImageError: If the photograph does not fit the model.
            ValueError: If the array is no photograph.
        """
        return prepare_image(image, self.config.input, self.config.network.input_channels)

    def infer(self, prepared: NDArray[np.uint8]) -> Logits:
        """Runs the network on prepared photographs [B, h, w, c]: the only step that uses the engine.

        With the policy `tile` the engine gets tiles of them, in batches of its own; see
        `segdec.inference.tiling`.
        """
        if self.config.input.policy == "tile":
            return infer_tiles(self.engine, prepared, self.config, batch_pixels=self.batch_pixels)
        return self.engine.infer(prepared)

    def interpret(
        self, logits: Logits, row: int, size: tuple[int, int], *, threshold: float | None = None
    ) -> Prediction:
        """Reads the answer for one photograph out of a batch's logits.

        Args:
            logits: What `infer` answered.
            row: Position of the photograph in the batch.
            size: Height and width of the photograph, px.
            threshold: Replaces the model's image threshold, 0…1.

        Raises:
            ConfigError: If `threshold` lies outside 0…1.
            SegdecError: If a logit is not a finite number.
        """
        return interpret(logits.mask[row], logits.classes[row], size, self.config, threshold=threshold)

    def predict(
        self,
        images: Sequence[NDArray[np.uint8]],
        *,
        threshold: float | None = None,
        batch_size: int = 8,
    ) -> list[Prediction]:
        """Predicts `images`, in their order; those of one prepared size share batches.

        Args:
            images: Photographs, uint8 [H, W, C] each, of any sizes.
            threshold: Replaces the model's image threshold, 0…1.
            batch_size: Most images the engine gets at once.

        Raises:
            ImageError: If a photograph does not fit the model.
            ConfigError: If `threshold` lies outside 0…1.
            ValueError: If an array is no photograph or `batch_size` is below 1.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size={batch_size}. Expected at least 1.")
        prepared = [self.prepare(image) for image in images]
        answers: dict[int, Prediction] = {}
        for indices in _batches(prepared, batch_size):
            logits = self.infer(np.stack([prepared[index] for index in indices]))
            for row, index in enumerate(indices):
                height, width = images[index].shape[:2]
                answers[index] = self.interpret(logits, row, (height, width), threshold=threshold)
        return [answers[index] for index in range(len(images))]

    def predict_many(
        self,
        images: Iterable[NDArray[np.uint8]],
        *,
        threshold: float | None = None,
        batch_size: int | None = None,
        max_in_flight: int | None = None,
    ) -> Pipeline[Prediction]:
        """Predicts any number of `images`, in their order, while the next ones are taken and prepared.

        Taking from `images`, preparing, running the network and interpreting each have a thread; an
        iterable that decodes files as it goes overlaps too. What goes wrong with a photograph, decoding
        included, `next` raises in that photograph's place and may be called again for the following one;
        see `segdec.inference.pipeline`.

        Args:
            images: Photographs, uint8 [H, W, C] each, of any sizes.
            threshold: Replaces the model's image threshold, 0…1.
            batch_size: Most photographs of one prepared size that share a batch, if they wait already; None
                for what the engine gains by, at most 8.
            max_in_flight: Most photographs that are held at once; None for two batches and 3.

        Raises:
            ImageError: In a photograph's place, if it does not fit the model.
            ConfigError: In a photograph's place, if `threshold` lies outside 0…1.
            ValueError: If `batch_size` or `max_in_flight` is below 1; in its place, if an array is no
                photograph.

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


def _check_answer(engine: Engine, config: ModelConfig, folder: Path) -> None:
    """Refuses files that are loaded and answer something else than the manifest says."""
    network = config.network
    try:
        found = engine.infer(np.zeros((1, STRIDE, STRIDE, network.input_channels), np.uint8))
        shapes = found.mask.shape, found.classes.shape
    except Exception as error:  # an engine may raise anything, and its own words are for programmers
        raise ArtifactError(
            f"{folder} cannot answer ({type(error).__name__}). Expected the network that its manifest "
            "describes; export the model again."
        ) from error
    side = STRIDE // network.mask_stride
    expected = (1, side, side, network.mask_channels), (1, network.num_classes)
    if shapes != expected:
        raise ArtifactError(
            f"{folder} answers with mask logits {shapes[0]} and class logits {shapes[1]}. Expected "
            f"{expected[0]} and {expected[1]}, as its manifest says; export the model again."
        )


def _batches(prepared: Sequence[NDArray[np.uint8]], batch_size: int) -> Iterator[list[int]]:
    """Indices of images of equal shape, at most `batch_size` at once."""
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, image in enumerate(prepared):
        groups[image.shape].append(index)
    for group in groups.values():
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]
