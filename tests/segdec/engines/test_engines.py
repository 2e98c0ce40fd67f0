import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from segdec.artifact import TrainingPhotographs, read_manifest
from segdec.artifact.variants import Speed, Variant, check_versions, order_by_speed
from segdec.config import InputConfig, ModelConfig, NetworkConfig
from segdec.engines import ENGINES, Engine, EngineKind, choose_engine
from segdec.engines.tensorflow import NetworkEngine
from segdec.errors import ArtifactError, ConfigError, MissingExtraError
from segdec.export.model_export import ModelCard, export_model, write_engine
from segdec.export.self_test import run_self_test
from segdec.export.timing import min_cpu_ms
from segdec.predictor import Predictor, usual_size
from tests.marks import slow_case

FOLDER = Path("model")


def test_first_installed_engine_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    held = ("openvino-int8", "tensorflow")
    monkeypatch.setitem(sys.modules, "openvino", object())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorflow", object())  # type: ignore[arg-type]
    assert choose_engine(FOLDER, held, None) == "openvino-int8"
    assert choose_engine(FOLDER, held, "tensorflow") == "tensorflow"
    monkeypatch.setitem(sys.modules, "openvino", None)  # type: ignore[arg-type]
    assert choose_engine(FOLDER, held, None) == "tensorflow"
    assert choose_engine(FOLDER, held, "openvino-int8") == "openvino-int8"


def test_engine_the_model_was_not_exported_for_is_rejected() -> None:
    words = r"exported for tensorflow, not .*'openvino'.* --engines tensorflow openvino"
    with pytest.raises(ArtifactError, match=words):
        choose_engine(FOLDER, ("tensorflow",), "openvino")
    with pytest.raises(ConfigError, match="engine 'abacus' is unknown"):
        choose_engine(FOLDER, ("tensorflow",), "abacus")


# === Preference ===


@pytest.mark.parametrize(
    ("named", "measured", "expected"),
    [
        ("openvino tensorflow", {"openvino": 74, "tensorflow": 21}, "tensorflow openvino"),
        ("openvino tensorflow", {"openvino": 22, "tensorflow": 21}, "openvino tensorflow"),  # by chance
        # What answers differently keeps its place: first where the user put it first, and only there.
        (
            "openvino-int8 openvino tensorflow",
            {"openvino-int8": 9, "openvino": 3, "tensorflow": 1},
            "openvino-int8 tensorflow openvino",
        ),
        ("openvino tensorflow", {"tensorflow": 1}, None),  # one was not measured
    ],
)
def test_the_fastest_exact_engine_is_preferred(named, measured, expected):
    order = tuple(named.split())
    found = order_by_speed(order, Speed(height=64, width=48, processor="", threads=2, cpu_ms=measured))
    assert found == (tuple(expected.split()) if expected else order)
    assert order_by_speed(order, None) == order


def fake_times(monkeypatch: pytest.MonkeyPatch, *rounds: Sequence[float]) -> list[set[str]]:
    """Makes each measurement return the next of `rounds`, ms; returns the measured names."""
    waiting, asked = list(rounds), []

    def measure(works: Mapping[str, Callable[[], object]]) -> dict[str, float]:
        asked.append({Path(name).name for name in works})
        for work in works.values():
            work()
        return dict(zip(works, waiting.pop(0), strict=True))

    monkeypatch.setattr("segdec.export.model_export.min_cpu_ms", measure)
    return asked


@pytest.mark.usefixtures("written_engines")
def test_export_measures_and_the_faster_engine_runs_the_model(
    wide_network: Any, wide_config: ModelConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = fake_times(monkeypatch, [74.04], [21.0])
    names, card = ["openvino", "tensorflow"], ModelCard("t", "1")
    manifest = export_model(wide_network, tmp_path / "model", wide_config, card, engines=names)
    assert asked == [{"openvino"}, {"tensorflow"}]
    assert Predictor.load(tmp_path / "model").engine_name == "tensorflow"
    assert manifest.speed is not None
    assert manifest.speed.cpu_ms == {"openvino": 74.0, "tensorflow": 21.0}
    assert (manifest.speed.height, manifest.speed.width) == (256, 256)
    assert list(manifest.variants) == names


@pytest.mark.slow
@pytest.mark.parametrize(("transformed", "kernels"), [(2.0, 0), (1.05, 1)])
def test_slower_fourier_transforms_are_not_used(transformed, kernels, wide_network, tmp_path, monkeypatch):
    fake_times(monkeypatch, [1.0, transformed])
    asked = images(1, 64, 48)
    write_engine("openvino", wide_network, tmp_path / "model", [], asked[0])
    assert len(list((tmp_path / "model").glob("*.npy"))) == kernels
    found = ENGINES["openvino"].load(tmp_path / "model").infer(asked)
    np.testing.assert_allclose(found.mask, wide_network(asked)["mask_logits"], rtol=1e-4, atol=1e-4)


def test_minimum_cpu_time_without_the_first_round() -> None:
    seconds = {"a": [9.0, 3.0, 2.0, 4.0, 5.0, 5.0], "b": [1.0, 7.0, 8.0, 7.5, 9.0, 9.0]}  # the first: warm-up
    now, order = [0.0], []

    def work(name: str) -> None:
        now[0] += seconds[name][order.count(name)] / 100
        order.append(name)

    works = {name: partial(work, name) for name in seconds}
    assert min_cpu_ms(works, lambda: now[0]) == pytest.approx({"a": 20.0, "b": 70.0})
    assert order == ["a", "b"] * 6


# === Answers ===


def images(batch: int, height: int, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(9).integers(0, 256, (batch, height, width, 1), dtype=np.uint8)


@cache
def load(artifact: Path, name: str) -> Predictor:
    return Predictor.load(artifact, name)


@pytest.mark.parametrize("name", ["tensorflow", "openvino"])
def test_exact_engines_pass_the_self_test_and_equal_the_network(name, wide_network, exported):
    predictor, asked = load(exported, name), images(3, 40, 104)
    run_self_test(predictor, exported)
    answer, expected = predictor.infer(asked), wide_network(asked.astype(np.float32), training=False)
    assert (answer.mask.dtype, answer.classes.dtype) == (np.float32, np.float32)
    np.testing.assert_allclose(answer.mask, expected["mask_logits"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(answer.classes, expected["class_logits"], rtol=0, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["tensorflow-bfloat16", "openvino-bfloat16"])
def test_export_with_bfloat16_passes_the_self_test(name, wide_network, wide_config, tmp_path):
    export_model(wide_network, tmp_path / "model", wide_config, ModelCard("t", "1"), engines=[name])
    predictor, asked = Predictor.load(tmp_path / "model"), images(3, 40, 104)
    run_self_test(predictor, tmp_path / "model")
    answer, expected = predictor.infer(asked), wide_network(asked)["mask_logits"]
    assert answer.mask.dtype == np.float32
    assert np.linalg.norm(answer.mask - expected) < 0.05 * np.linalg.norm(expected)
    # With 7 times fewer multiplications, Fourier transforms are not faster than a convolution in bfloat16.
    assert not list(tmp_path.rglob("*.npy"))


@pytest.mark.parametrize("name", ["openvino", slow_case("tensorflow")])
def test_several_classes_are_the_same_in_each_engine(name, tmp_path):
    from segdec.network.network import build_network

    config = NetworkConfig(
        segmentation_widths=((4,), (4,), (4,)), feature_width=4, decision_widths=(4,), num_classes=4
    )
    network, asked = build_network(config), images(2, 16, 24)
    write_engine(name, network, tmp_path / "model", [], asked[0])
    found = ENGINES[name].load(tmp_path / "model").infer(asked)
    np.testing.assert_allclose(found.classes, network(asked)["class_logits"], rtol=0, atol=1e-4)
    np.testing.assert_allclose(np.exp(found.classes).sum(axis=1), 1.0, rtol=1e-5)


# === One size ===


def test_openvino_compiles_for_the_usual_size_and_gives_the_same_answers(tiny_network, tmp_path, monkeypatch):
    import segdec.engines.openvino as engine

    write_engine("openvino", tiny_network, tmp_path / "model", [])
    compiled, core = [], engine.openvino_core()

    def compile_model(model, *settings):
        compiled.append(str(model.input("images").partial_shape))
        return core.compile_model(model, *settings)

    counting = SimpleNamespace(read_model=core.read_model, compile_model=compile_model)
    monkeypatch.setattr(engine, "openvino_core", lambda: counting)
    loaded = ENGINES["openvino"].load(tmp_path / "model", size=(64, 48))
    (tmp_path / "model" / "model.xml").unlink()  # as the private copy
    assert compiled == ["[1,64,48,1]"]
    for batch, height, width in ((1, 64, 48), (3, 64, 48), (2, 32, 16)):
        assert compiled == ["[1,64,48,1]"]  # also for several images
        asked = images(batch, height, width)
        found, expected = loaded.infer(asked), tiny_network(asked)
        np.testing.assert_allclose(found.mask, expected["mask_logits"], rtol=0, atol=1e-4)
        np.testing.assert_allclose(found.classes, expected["class_logits"], rtol=0, atol=1e-4)
    assert compiled == ["[1,64,48,1]", "[?,?,?,1]"]
    loaded.release_memory()
    assert np.isfinite(loaded.infer(images(1, 64, 48)).mask).all()


def test_openvino_compiles_fourier_transforms_once(exported):
    """Another compilation would hold the kernels' spectra once more."""
    assert load(exported, "openvino").engine.size is None


@pytest.mark.parametrize(
    ("settings", "trained", "size"),
    [
        ({}, None, (256, 256)),  # of the self-test
        ({}, ((100, 100), (50, 50)), (104, 56)),
        ({}, ((100, 120), (50, 50)), (256, 256)),
        ({"policy": "resize", "height": 64, "width": 48}, ((100, 100), (50, 50)), (64, 48)),
        ({"policy": "tile", "height": 64, "width": 48, "overlap_px": 8}, ((100, 100), (50, 50)), (64, 48)),
    ],
)
def test_the_usual_size_is_that_of_a_tile_or_of_the_training_photographs(settings, trained, size, exported):
    ranges = trained and TrainingPhotographs(heights=trained[0], widths=trained[1], aspects=(0.4, 2.0))
    own = {"input": InputConfig(**settings), "training_photographs": ranges}
    assert usual_size(read_manifest(exported).model_copy(update=own)) == size


def test_a_model_is_loaded_for_its_usual_size(tiny_artifact: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, load_engine = [], EngineKind.load

    def load_sized(kind: EngineKind, folder: Path, threads: int | None, size: tuple[int, int]) -> Engine:
        sizes.append(size)
        return load_engine(kind, folder, threads, size)

    monkeypatch.setattr(EngineKind, "load", load_sized)
    Predictor.load(tiny_artifact)
    assert sizes == [(256, 256)]


def test_older_package_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    installed, variant = ["2026.4.0", "2027.0.0", "2026.3.0"], Variant(built_with={"openvino": "2026.4.1"})
    monkeypatch.setattr("segdec.artifact.variants.metadata.version", lambda _package: installed.pop(0))
    check_versions("openvino-int8", variant)
    check_versions("openvino-int8", variant)
    with pytest.raises(ArtifactError, match=r"openvino 2026\.4\.1, but 2026\.3\.0 .*--engines openvino-int8"):
        check_versions("openvino-int8", variant)


def test_int8_is_close_to_the_network(wide_network: Any, exported: Path) -> None:
    asked = images(4, 64, 48)
    exact, found = NetworkEngine(wide_network).infer(asked), load(exported, "openvino-int8").infer(asked)
    for one, other in ((exact.mask, found.mask), (exact.classes, found.classes)):
        assert 0 < np.linalg.norm(one - other) < 0.3 * np.linalg.norm(one)


def test_warning_on_a_cpu_without_bfloat16(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import segdec.engines.openvino
    import segdec.engines.tensorflow

    for module in (segdec.engines.openvino, segdec.engines.tensorflow):
        monkeypatch.setattr(module, "has_bfloat16", lambda: False)
    (note,) = segdec.engines.openvino.OpenVINOEngine.load(exported / "openvino", "bfloat16").notes
    assert "uses float32" in note
    monkeypatch.setattr(segdec.engines.tensorflow.tf.saved_model, "load", lambda _: object())
    engine = segdec.engines.tensorflow.TensorFlowEngine.load(exported / "tensorflow", "bfloat16")
    assert "use the engine 'tensorflow'" in engine.notes[0]
    assert load(exported, "openvino").notes == ()


def test_missing_openvino_names_its_extra(exported: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "segdec.engines.openvino", raising=False)
    with pytest.raises(MissingExtraError, match=r"'openvino'.*extra 'openvino'.*'\.\[openvino\]'"):
        Predictor.load(exported, "openvino")


def test_answers_are_the_same_after_memory_was_released(exported: Path) -> None:
    predictor, asked = load(exported, "openvino"), images(1, 64, 48)
    before = predictor.infer(asked)
    predictor.release_memory()
    np.testing.assert_array_equal(predictor.infer(asked).mask, before.mask)


GIVEN_BACK = """
import faulthandler, gc, signal, sys
from pathlib import Path
from segdec.engines import ENGINES
faulthandler.enable()
signal.signal(signal.SIGTERM, lambda *_: print("stopped"))
engines = [ENGINES["openvino"].load(Path(sys.argv[1])) for _ in range(3)]
while engines:
    del engines[0]
    gc.collect()
signal.raise_signal(signal.SIGTERM)
"""


@pytest.mark.slow
def test_signals_arrive_after_models_were_replaced(exported: Path) -> None:
    command = [sys.executable, "-c", GIVEN_BACK, str(exported / "openvino")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
