"""Photographs in, predictions out: an engine with its model's pre- and postprocessing around it."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Self, cast

import numpy as np
from numpy.typing import NDArray

from segdec.artifact import Manifest, read_manifest
from segdec.config import ModelConfig
from segdec.engines import Engine, Logits
from segdec.errors import ConfigError
from segdec.postprocessing import Prediction, interpret
from segdec.preprocessing import input_size, prepare_image
from segdec.tiling import infer_tiles

ENGINES = {"tensorflow": ("segdec.engines.tensorflow", "TensorFlowEngine")}
"""Module and class of each engine; its files lie in the artifact's folder of the same name."""

DEFAULT_SIZE = 256
"""Side of the photograph that stands for those of a model which takes any size, px."""


class Predictor:
    """Answers photographs with predictions.

    `predict` does it all; `prepare`, `infer` and `interpret` are its steps, for those who run them in
    different threads.

    Args:
        engine: Runs the network.
        config: What the model is.
        batch_pixels: Most pixels (B × H × W) in a batch of tiles; None for what the engine advises.

    Attributes:
        config: As given.
        batch_pixels: As given, else as the engine advises: a larger batch is not faster than its images one
            by one.
        manifest: The artifact's manifest; None for a model that was never an artifact.

    Example:
        >>> predictor = Predictor.load(Path("runs/demo/model"))
        >>> predictor.predict([read_image(Path("part.png")).pixels])[0].label
        'good'
    """

    def __init__(self, engine: Engine, config: ModelConfig, *, batch_pixels: int | None = None) -> None:
        self.engine = engine
        self.config = config
        self.batch_pixels = batch_pixels or engine.batch_pixels
        self.manifest = config if isinstance(config, Manifest) else None

    @classmethod
    def load(cls, folder: Path, engine: str = "tensorflow", *, batch_pixels: int | None = None) -> Self:
        """Loads the artifact in `folder` after checking all of its files; `batch_pixels` as in the class.

        Raises:
            ArtifactError: If the artifact is damaged, incomplete or too new.
            ConfigError: If there is no such engine.
            MissingExtraError: If the engine's package is not installed.
        """
        _check_engine(engine)
        manifest = read_manifest(folder)
        return cls(find_engine(engine)(folder / engine), manifest, batch_pixels=batch_pixels)

    def warm_shape(self) -> tuple[int, int, int]:
        """Shape [h, w, c] of the prepared photograph that is likely to come first.

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

        With the policy `tile` the engine gets tiles of them, in batches of its own; see `segdec.tiling`.
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


def find_engine(name: str) -> Callable[[Path], Engine]:
    """The function that loads the engine `name` from its folder inside an artifact.

    Raises:
        ConfigError: If there is no such engine.
        MissingExtraError: If the engine's package is not installed.
    """
    _check_engine(name)
    module, engine = ENGINES[name]
    return cast(Callable[[Path], Engine], getattr(import_module(module), engine).load)


def _check_engine(name: str) -> None:
    if name not in ENGINES:
        raise ConfigError(f"engine {name!r} is unknown. Expected one of: {', '.join(ENGINES)}.")


def _batches(prepared: Sequence[NDArray[np.uint8]], batch_size: int) -> Iterator[list[int]]:
    """Indices of images of equal shape, at most `batch_size` at once."""
    groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, image in enumerate(prepared):
        groups[image.shape].append(index)
    for group in groups.values():
        for start in range(0, len(group), batch_size):
            yield group[start : start + batch_size]
