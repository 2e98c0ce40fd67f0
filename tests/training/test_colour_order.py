"""Red, green and blue keep their order from a file to training, and through export and engines to answers."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from api.app import create_app
from api.settings import Settings
from datasets.reading import read
from datasets.sample import DataSetItem
from segdec.config import InputConfig
from segdec.images import decode_image
from segdec.predictor import Predictor
from tests.api.conftest import ServiceClient
from training.data.array_cache import ArrayCache
from training.data.example_source import PhotographSource

pytest.importorskip("tensorflow")

COLOURS = np.array([[220, 30, 10], [200, 90, 40], [240, 60, 20]], np.uint8)
PHOTOGRAPH = np.kron(COLOURS[None], np.ones((32, 16, 1), np.uint8))
"""Three stripes of kinds of red, 32 × 48 px. JPEG keeps flat blocks of 16 px nearly exactly."""
FORMATS = {
    "png": {},
    "bmp": {},
    "tiff": {},
    "webp": {"lossless": True},
    "jpeg": {"quality": 100, "subsampling": 0},
}
LEVELS = 2
"""By which a JPEG may differ."""
TOLERANCE = 2e-5


def encode(kind, pixels=PHOTOGRAPH):
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **FORMATS[kind])
    return file.getvalue()


@pytest.fixture(scope="module")
def colour_artifact(make_once, tiny_config):
    """A network that sees only red, as a model."""
    import keras

    from segdec.export.model_export import ModelCard, export_model
    from segdec.network.network import build_network

    network = tiny_config.network.model_copy(update={"input_channels": 3})
    config = tiny_config.model_copy(update={"network": network})

    def fill(folder):
        keras.utils.set_random_seed(7)
        built = build_network(network)
        kernel = next(weight for weight in built.trainable_weights if weight.shape[2:3] == (3,))
        kernel.assign(kernel.numpy() * np.reshape([1, 0, 0], (3, 1)))
        built(np.random.default_rng(0).uniform(0, 255, (2, 16, 16, 3)).astype(np.float32), training=True)
        export_model(built, folder, config, ModelCard("colour", "1"), engines=["tensorflow", "openvino"])

    return make_once("colour", fill)


@pytest.mark.parametrize("kind", FORMATS)
def test_training_reads_red_green_blue(kind, tmp_path):
    path = tmp_path / f"part.{kind}"
    path.write_bytes(encode(kind))
    items = [DataSetItem("part", Path(path), None, 0, "part")]
    image = PhotographSource(items, read, InputConfig(), 3, ArrayCache(10))[0].image
    assert np.abs(image.astype(int) - PHOTOGRAPH).max() <= LEVELS


@pytest.mark.parametrize("engine", ["tensorflow", "openvino"])
def test_every_engine_and_format_gives_the_answer_of_the_network(colour_artifact, engine):
    predictor = Predictor.load(colour_artifact, engine)
    expected, swapped = predictor.predict([PHOTOGRAPH, np.ascontiguousarray(PHOTOGRAPH[..., ::-1])])
    assert abs(expected.score - swapped.score) > 10 * TOLERANCE
    settings = Settings(model=colour_artifact, engine=engine, batch_sizes=(1,), accept_webp=True)
    with ServiceClient(create_app(settings)) as client:
        for kind in FORMATS:
            data, headers = encode(kind), {"Content-Type": f"image/{kind}"}
            [prediction] = predictor.predict([decode_image(data, kind, accept_webp=True).pixels])
            answer = client.post("/v1/predict", content=data, headers=headers).json()
            scores = prediction.score, answer["decision"]["score"]
            assert scores == pytest.approx((expected.score, expected.score), abs=TOLERANCE), kind


# === A trained network ===

RED, BLUE = (230, 60, 40), (40, 60, 230)


def make_part(number, colour):
    """A grey part, 32 × 32 px, with a dot; the order of the channels alone tells a red from a blue one."""
    pixels = np.random.default_rng(number).integers(100, 120, (32, 32, 3), np.uint8)
    top, left = np.random.default_rng(number).integers(2, 20, 2)
    dot = np.s_[top : top + 10, left : left + 10]
    pixels[dot] = colour
    mask = np.zeros((32, 32), np.uint8)
    mask[dot] = 255
    return pixels, mask


@pytest.fixture
def trained_on_dots(tmp_path, tensorflow_devices):  # noqa: ARG001
    """A model, trained on photographs whose red dots are defects and whose blue dots are good."""
    from training.experiment_file import load_experiment
    from training.export import ExportOptions, export_run
    from training.trainer import Trainer

    splits = []
    for name in ("red", "good", "masks/red"):
        (tmp_path / "dots" / name).mkdir(parents=True)
    for number in range(32):
        name, colour = (("red", RED), ("good", BLUE))[number % 2]
        pixels, mask = make_part(number, colour)
        Image.fromarray(pixels).save(tmp_path / f"dots/{name}/{number}.png")
        if name == "red":
            Image.fromarray(mask).save(tmp_path / f"dots/masks/red/{number}.png")
        splits.append(f"{'val' if number % 8 < 2 else 'train'}  {name}/{number}\n")
    (tmp_path / "splits.txt").write_text("".join(splits))
    (tmp_path / "dots.toml").write_text(DOTS)
    flags = {"runs": "runs", "data.root": "dots", "data.splits": "splits.txt"}
    paths = [word for flag, path in flags.items() for word in (f"--{flag}", str(tmp_path / path))]
    Trainer(load_experiment(tmp_path / "dots.toml", paths)).run()
    engines = ["tensorflow", "openvino"]
    export_run(tmp_path / "runs/dots", tmp_path / "model", ExportOptions(engines=engines, measure=False))
    return tmp_path / "model"


DOTS = """
name = "dots"
batch_size = 8
[network]
input_channels = 3
segmentation_widths = [[8], [8], [8]]
feature_width = 8
feature_kernel = 3
decision_widths = [8, 8, 8]
[stages]
segment = { steps = 60, learning_rate = 0.01 }
decision = { steps = 60, learning_rate = 0.01 }
"""


@pytest.mark.slow
def test_a_trained_network_tells_red_from_blue_in_answers(trained_on_dots):
    for engine in ("tensorflow", "openvino"):
        settings = Settings(model=trained_on_dots, engine=engine, batch_sizes=(1,))
        with ServiceClient(create_app(settings)) as client:
            for number in range(100, 106):
                labels = {}
                for colour in (RED, BLUE):
                    data = encode("png", make_part(number, colour)[0])
                    answer = client.post("/v1/predict", content=data, headers={"Content-Type": "image/png"})
                    labels[colour] = answer.json()["decision"]["label"]
                assert labels == {RED: "red", BLUE: "good"}
