import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from segdec.artifact import read_manifest
from segdec.engines import ENGINES, choose_engine
from segdec.errors import ArtifactError, ConfigError, MissingExtraError
from segdec.export.self_test import run_self_test
from segdec.predictor import Predictor
from segdec.variants import Variant, check_versions

EXACT = [name for name, kind in ENGINES.items() if kind.precision == "float32"]
FOLDER = Path("model")


def test_every_engine_has_the_name_of_its_package_and_precision() -> None:
    for name, kind in ENGINES.items():
        assert name == (kind.package if kind.precision == "float32" else f"{kind.package}-{kind.precision}")


def test_first_installed_engine_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    held = ("openvino-int8", "tensorflow")
    monkeypatch.setitem(sys.modules, "openvino", object())  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "tensorflow", object())  # type: ignore[arg-type]
    assert choose_engine(FOLDER, held, None) == "openvino-int8"
    assert choose_engine(FOLDER, held, "tensorflow") == "tensorflow"
    monkeypatch.setitem(sys.modules, "openvino", None)  # type: ignore[arg-type]
    assert choose_engine(FOLDER, held, None) == "tensorflow"
    assert choose_engine(FOLDER, held, "openvino-int8") == "openvino-int8"


def test_model_none_of_whose_engines_is_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # type: ignore[arg-type]
    with pytest.raises(MissingExtraError, match=r"'openvino'.*'\.\[openvino\]'"):
        choose_engine(FOLDER, ("openvino", "openvino-int8"), None)


def test_engine_the_model_was_not_exported_for_is_refused() -> None:
    with pytest.raises(
        ArtifactError, match=r"exported for tensorflow, not .*'openvino'.* --engines tensorflow openvino"
    ):
        choose_engine(FOLDER, ("tensorflow",), "openvino")
    with pytest.raises(ConfigError, match="engine 'abacus' is unknown"):
        choose_engine(FOLDER, ("tensorflow",), "abacus")


def images(batch: int, height: int, width: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(9).integers(0, 256, (batch, height, width, 1), dtype=np.uint8)


@pytest.mark.parametrize("shape", [(1, 64, 48), (3, 40, 104), (1, 200, 8)])
@pytest.mark.parametrize("name", EXACT)
def test_exact_engines_answer_as_the_network(
    name: str, shape: tuple[int, int, int], wide_network: Any, every_engine: Path
) -> None:
    from segdec.engines.tensorflow import NetworkEngine

    asked = images(*shape)
    expected, found = (
        NetworkEngine(wide_network).infer(asked),
        ENGINES[name].load(every_engine / name).infer(asked),
    )
    np.testing.assert_allclose(found.mask, expected.mask, rtol=0, atol=1e-4)
    np.testing.assert_allclose(found.classes, expected.classes, rtol=0, atol=1e-4)
    assert (found.mask.dtype, found.classes.dtype) == (np.float32, np.float32)


@pytest.mark.parametrize("name", ENGINES)
def test_every_engine_passes_the_self_test(name: str, every_engine: Path) -> None:
    predictor = Predictor.load(every_engine, name)
    assert predictor.engine_name == name
    run_self_test(predictor, every_engine)


@pytest.mark.parametrize("name", ENGINES)
def test_answers_do_not_depend_on_the_batch(name: str, every_engine: Path) -> None:
    predictor, photographs = Predictor.load(every_engine, name), images(3, 64, 48)
    together, alone = predictor.infer(photographs), [predictor.infer(one[None]) for one in photographs]
    scale = 1e-4 if ENGINES[name].precision == "float32" else 0.05
    for row, one in enumerate(alone):
        np.testing.assert_allclose(together.mask[row], one.mask[0], rtol=0, atol=scale)


def test_manifest_says_what_each_engine_is(every_engine: Path) -> None:
    variants = read_manifest(every_engine).variants
    assert list(variants) == list(ENGINES)
    for name, variant in variants.items():
        assert variant.precision == ENGINES[name].precision
        assert list(variant.built_with) == [ENGINES[name].package]
        if variant.precision == "float32":
            assert (variant.mask_tolerance, variant.score_tolerance) == (0, 0)


@pytest.mark.parametrize(
    ("installed", "refused"), [("2026.3.0", True), ("2026.4.0", False), ("2027.0.0", False)]
)
def test_older_package_than_wrote_it_is_refused(
    installed: str, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    import segdec.variants

    monkeypatch.setattr(segdec.variants.metadata, "version", lambda _package: installed)
    variant = Variant(built_with={"openvino": "2026.4.1"})
    if not refused:
        check_versions("openvino-int8", variant)
        return
    with pytest.raises(ArtifactError, match=r"openvino 2026\.4\.1; 2026\.3\.0 .*--engines openvino-int8"):
        check_versions("openvino-int8", variant)


def test_int8_differs_but_little(wide_network: Any, every_engine: Path) -> None:
    from segdec.engines.tensorflow import NetworkEngine

    asked = images(4, 64, 48)
    exact, found = (
        NetworkEngine(wide_network).infer(asked),
        Predictor.load(every_engine, "openvino-int8").infer(asked),
    )
    for one, other in ((exact.mask, found.mask), (exact.classes, found.classes)):
        assert 0 < np.linalg.norm(one - other) < 0.3 * np.linalg.norm(one)


def test_cpu_without_bfloat16_says_so(every_engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import segdec.engines.openvino
    import segdec.engines.tensorflow

    for module in (segdec.engines.openvino, segdec.engines.tensorflow):
        monkeypatch.setattr(module, "computes_bfloat16", lambda: False)
    (note,) = Predictor.load(every_engine, "openvino-bfloat16").notes
    assert "computes in float32" in note
    (note,) = Predictor.load(every_engine, "tensorflow-bfloat16").notes
    assert "use the engine 'tensorflow'" in note
    assert Predictor.load(every_engine, "openvino").notes == ()


def test_missing_openvino_names_its_extra(every_engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openvino", None)  # type: ignore[arg-type]
    monkeypatch.delitem(sys.modules, "segdec.engines.openvino", raising=False)
    with pytest.raises(MissingExtraError, match=r"'openvino'.*extra 'openvino'.*'\.\[openvino\]'"):
        Predictor.load(every_engine, "openvino")


def test_damaged_openvino_model_is_refused(tmp_path: Path) -> None:
    from segdec.engines.openvino import OpenVINOEngine
    from segdec.engines.openvino_graph import MODEL

    with pytest.raises(ArtifactError, match=r"holds no model that OpenVINO .* can load"):
        OpenVINOEngine.load(tmp_path)
    (tmp_path / MODEL).write_text("<net/>")
    with pytest.raises(ArtifactError, match="another beginning than a model of OpenVINO"):
        OpenVINOEngine.load(tmp_path)


@pytest.mark.parametrize("name", ["tensorflow", "openvino"])
def test_answers_are_the_same_after_memory_was_released(name: str, every_engine: Path) -> None:
    predictor = Predictor.load(every_engine, name)
    images = np.random.default_rng(5).integers(0, 256, (1, 64, 48, 1), dtype=np.uint8)
    before = predictor.infer(images)
    predictor.release_memory()
    np.testing.assert_array_equal(predictor.infer(images).mask, before.mask)


def test_openvino_takes_the_threads_it_is_given(every_engine: Path) -> None:
    asked = images(1, 64, 48)
    one = Predictor.load(every_engine, "openvino", threads=1).infer(asked)
    np.testing.assert_allclose(
        one.mask, Predictor.load(every_engine, "openvino").infer(asked).mask, atol=1e-5
    )


def test_engine_built_wrongly_is_not_exported(
    wide_network: Any, wide_config: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import segdec.export.openvino_model
    from segdec.export.export import ModelCard, export_model
    from segdec.network.network import build_network

    other = build_network(wide_config.network)
    save = segdec.export.openvino_model.save_float
    monkeypatch.setattr(
        segdec.export.openvino_model, "save_float", lambda _network, folder: save(other, folder)
    )
    with pytest.raises(ArtifactError, match="logits differ from the network's"):
        export_model(
            wide_network, tmp_path / "model", wide_config, ModelCard("wide", "1"), engines=["openvino"]
        )
    assert list(tmp_path.iterdir()) == []


def test_int8_without_photographs_is_refused(wide_network: Any, tmp_path: Path) -> None:
    from segdec.export.export import write_engine

    with pytest.raises(ConfigError, match=re.escape("No validation photograph to calibrate int8 with")):
        write_engine("openvino-int8", wide_network, tmp_path / "openvino-int8", [])


GIVEN_BACK = """
import faulthandler, gc, signal, sys
from pathlib import Path
from segdec.engines import ENGINES
faulthandler.enable()
signal.signal(signal.SIGTERM, lambda *_: print("told to stop"))
engines = [ENGINES["openvino"].load(Path(sys.argv[1])) for _ in range(3)]
while engines:
    del engines[0]
    gc.collect()
signal.raise_signal(signal.SIGTERM)
"""


def test_signals_arrive_after_models_were_replaced(every_engine: Path) -> None:
    command = [sys.executable, "-c", GIVEN_BACK, str(every_engine / "openvino")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "told to stop\n"), done.stderr
