"""Exports a trained network as an artifact and checks each engine against the network."""

import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path

import numpy as np
import tensorflow as tf
from numpy.typing import NDArray
from pydantic import ValidationError

from segdec import __version__
from segdec.artifact import (
    REPORT,
    Manifest,
    ModelRating,
    OperatingPoints,
    Parent,
    SelfTest,
    TrainingPhotographs,
    write_artifact,
)
from segdec.artifact.variants import MIN_SPEEDUP, Speed, Variant, Verification
from segdec.config import STRIDE, EncoderWeights, ModelConfig, config_error
from segdec.engines import ENGINES, Engine, check_engine
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import ArtifactError, ConfigError
from segdec.export.reduced_graph import reduce_saved_model
from segdec.export.saved_model import save_network
from segdec.export.self_test import (
    make_self_test,
    predict_unrefined,
    random_photograph,
    run_self_test,
    write_self_test,
)
from segdec.export.timing import min_cpu_ms
from segdec.inference.postprocessing import Prediction
from segdec.inference.preprocessing import prepare_image
from segdec.network.folding import fold_network
from segdec.network.network import SegDecNet
from segdec.predictor import Predictor, usual_size
from segdec.runtime.cpu_features import cpu_name
from segdec.runtime.threads import available_cores

TOLERANCE = 1e-4
"""Maximum difference between a logit of the network and of an exact engine, absolute plus relative."""

Verify = Callable[[str, Predictor], Verification]
"""Compares the results of the named engine with the network's; raises to reject the engine."""

PROBES = ((1, 64, 64), (4, 40, 88))
"""Batch size, height and width, px, of the images for the comparison."""


@dataclass(frozen=True)
class ModelCard:
    """The manifest's description of a model, without its configuration; see `segdec.artifact.Manifest`."""

    name: str
    version: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    metrics_split: str = ""
    data_fingerprint: str = ""
    encoder: EncoderWeights | None = None
    parent: Parent | None = None
    training_photographs: TrainingPhotographs | None = None
    operating_points: OperatingPoints | None = None
    rating: ModelRating | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class ValidationPhotographs:
    """Optional validation photographs for an export.

    Attributes:
        sample: Photograph uint8 [H, W, C] of the self-test, stored in the artifact; None: seeded noise.
        calibration: Photographs uint8 [H, W, C] that calibrate int8.
        verify: Compares an engine's results with the network's; None: no comparison.
    """

    sample: NDArray[np.uint8] | None = None
    calibration: Sequence[NDArray[np.uint8]] = ()
    verify: Verify | None = None


NO_PHOTOGRAPHS = ValidationPhotographs()


def export_model(
    network: SegDecNet,
    folder: Path,
    config: ModelConfig,
    card: ModelCard,
    *,
    engines: Sequence[str] = ("tensorflow",),
    validation: ValidationPhotographs = NO_PHOTOGRAPHS,
    report: bytes | None = None,
    measure: bool = True,
    overwrite: bool = False,
) -> Manifest:
    """Exports `network` as an artifact for `engines` with a self-test, and checks each engine's results.

    The manifest has the speed of several engines, so that the fastest exact one is the default. For OpenVINO
    the export also measures whether Fourier transforms are faster at the input's size.

    Args:
        network: Trained network.
        folder: Output folder.
        config: Configuration of the model, with its thresholds.
        card: Name, version and origin of the model.
        engines: Names, see `segdec.engines.ENGINES`; the first one is preferred, unless it is exact and
            another exact one is faster.
        validation: Photographs for test, calibration and comparison.
        report: The page of the evaluation, stored in the artifact; None for none.
        measure: Whether to measure speed. Without it, or if TensorFlow sees a GPU, the first engine is
            preferred, and two exports of one network are identical.
        overwrite: Whether to replace an artifact at `folder`.

    Raises:
        ArtifactError: If `folder` cannot be written or the exported model gives other results.
        ConfigError: If `network` and `config` do not match, an engine is unknown, or a manifest value is
            invalid (a metric that is not finite, an empty name).
        ImageError: If a photograph does not fit the model.
        MissingExtraError: If an engine's package is not installed.
    """
    _check_network(network, config)
    for engine in engines:
        check_engine(engine)
    reference = NetworkEngine(network)
    photograph = random_photograph(config) if validation.sample is None else validation.sample
    with full_precision():
        answer = predict_unrefined(Predictor(reference, config), photograph)
    manifest = _manifest(config, card, make_self_test(photograph, answer, config.calibration.slope), engines)
    inputs = [_network_input(one, config) for one in validation.calibration]
    example = _network_input(photograph, config)
    measure = measure and not tf.config.list_physical_devices("GPU")

    def build(staged: Path) -> Manifest:
        write_self_test(staged, manifest.self_test, photograph, answer)
        if report is not None:
            (staged / REPORT).write_bytes(report)
        described = manifest
        cpu_ms: dict[str, float] = {}
        for engine in engines:
            write_engine(engine, network, staged / engine, inputs, example if measure else None)
            loaded = ENGINES[engine].load(staged / engine, size=usual_size(manifest))
            with full_precision():
                if ENGINES[engine].precision == "float32":
                    check_parity(reference, loaded, config, usual_size(manifest))
                variant = _describe(engine, Predictor(loaded, config), photograph, answer, validation.verify)
                described = described.model_copy(update={"variants": {**described.variants, engine: variant}})
                run_self_test(Predictor(loaded, described, engine_name=engine), staged)
            if measure and len(engines) > 1:
                cpu_ms |= min_cpu_ms({engine: partial(loaded.infer, example[None])})
        if not cpu_ms:
            return described
        height, width = example.shape[:2]
        rounded = {name: float(f"{value:.3g}") for name, value in cpu_ms.items()}
        speed = Speed(
            height=height, width=width, processor=cpu_name(), threads=available_cores(), cpu_ms=rounded
        )
        return described.model_copy(update={"speed": speed})

    return write_artifact(folder, build, overwrite=overwrite)


def write_engine(
    name: str,
    network: SegDecNet,
    folder: Path,
    prepared: Sequence[NDArray[np.uint8]],
    example: NDArray[np.uint8] | None = None,
) -> None:
    """Writes the files of an engine to the new folder `folder`.

    Args:
        name: See `segdec.engines.ENGINES`.
        network: Trained network.
        folder: Folder inside the artifact.
        prepared: Prepared photographs, uint8 [h, w, C] each, that calibrate int8.
        example: Typical network input, uint8 [h, w, C], to measure which variant of the model is faster;
            None: use the one that is usually faster.

    Raises:
        ConfigError: If there are no photographs to calibrate int8.
        MissingExtraError: If a package is not installed.
    """
    kind = ENGINES[name]
    if kind.package == "tensorflow":
        dtype = "mixed_bfloat16" if kind.precision == "bfloat16" else None
        save_network(fold_network(network, dtype), folder)
        reduce_saved_model(folder)
        return
    from segdec.export import openvino_model  # not at the top: its package is an extra

    served = fold_network(network)
    if kind.precision == "int8":
        openvino_model.save_int8(served, folder, prepared)
        return
    transformed = openvino_model.save_float(served, folder, kind.precision)
    if transformed and example is not None:
        with tempfile.TemporaryDirectory() as place:
            direct, size = Path(place), (example.shape[0], example.shape[1])
            openvino_model.save_float(served, direct, kind.precision, transform=False)
            cpu_ms = min_cpu_ms(
                {
                    str(one): partial(kind.load(one, size=size).infer, example[None])
                    for one in (direct, folder)
                }
            )
            if cpu_ms[str(direct)] * MIN_SPEEDUP <= cpu_ms[str(folder)]:
                shutil.rmtree(folder)
                shutil.copytree(direct, folder)


def _network_input(photograph: NDArray[np.uint8], config: ModelConfig) -> NDArray[np.uint8]:
    """Returns the prepared photograph, or one tile of it."""
    prepared = prepare_image(photograph, config.input, config.network.input_channels)
    if config.input.policy != "tile":
        return prepared
    height, width = config.input.size
    return prepared[:height, :width]


def _describe(
    name: str, predictor: Predictor, photograph: NDArray[np.uint8], answer: Prediction, verify: Verify | None
) -> Variant:
    """Returns the manifest section of an engine, with twice its difference here as tolerance."""
    kind = ENGINES[name]
    prediction = predict_unrefined(predictor, photograph)
    exact = kind.precision == "float32"
    return Variant(
        precision=kind.precision,
        built_with={kind.package: metadata.version(kind.package)},
        score_tolerance=0.0 if exact else 2 * abs(prediction.score - answer.score),
        mask_tolerance=0.0 if exact else 2 * float(np.abs(prediction.mask_scores - answer.mask_scores).max()),
        verification=verify(name, predictor) if verify else None,
    )


@contextmanager
def full_precision() -> Iterator[None]:
    """Turns off TF32 on GPUs, whose rounding would hide differences of 1e-5."""
    before = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(before)


def check_parity(reference: Engine, exported: Engine, config: ModelConfig, size: tuple[int, int]) -> None:
    """Compares the results of two engines on random images of several sizes, one of them `size`.

    Raises:
        ArtifactError: If a number differs by more than `TOLERANCE` or is NaN.
    """
    random = np.random.default_rng(0)
    for batch, height, width in (*PROBES, (1, *size)):
        shape = (batch, height, width, config.network.input_channels)
        images = random.integers(0, 256, shape, dtype=np.uint8)
        expected, answers = reference.infer(images), exported.infer(images)
        for part, one in vars(expected).items():
            other = getattr(answers, part)
            if one is not None and not np.allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE):
                raise ArtifactError(
                    f"The exported model's output '{part}' differs from the network's by "
                    f"{np.abs(one - other).max():.3g}. Expected at most {TOLERANCE}; no artifact was written."
                )


def _manifest(config: ModelConfig, card: ModelCard, self_test: SelfTest, engines: Sequence[str]) -> Manifest:
    """Returns the manifest before the export, with only the precision of each variant."""
    try:
        return Manifest(
            **config.model_dump(include=set(ModelConfig.model_fields)),
            **asdict(card),
            segdec_version=__version__,
            self_test=self_test,
            variants={engine: Variant(precision=ENGINES[engine].precision) for engine in engines},
        )
    except ValidationError as error:
        raise config_error(error, Manifest) from error


def _check_network(network: SegDecNet, config: ModelConfig) -> None:
    channels, shape = network.input_shape[-1], config.network
    shapes = network.compute_output_shape((1, STRIDE, STRIDE, channels))
    _, side, _, masks = shapes["mask_logits"]
    built = (channels, shapes["class_logits"][-1], STRIDE // side, masks)
    expected = (shape.input_channels, shape.num_classes, shape.mask_stride, shape.mask_channels)
    if built != expected:
        raise ConfigError(
            f"The network has {built[0]} input channels, {built[1]} classes, a mask stride of {built[2]} and "
            f"{built[3]} masks, its configuration says {', '.join(map(str, expected))}. "
            "Expected the configuration the network was built from."
        )
