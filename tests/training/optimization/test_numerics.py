import pytest

from segdec.runtime import cpu_features
from training.experiment_file import load_experiment

pytest.importorskip("tensorflow")

from training.optimization.numerics import compute_dtype, emulates_bfloat16
from training.trainer import Trainer


@pytest.fixture(params=["fpu avx2", "fpu avx512f avx512_bf16"], ids=["without bfloat16", "with bfloat16"])
def has_bfloat16(request, tmp_path, monkeypatch):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"flags\t\t: {request.param}\n", encoding="utf-8")
    monkeypatch.setattr(cpu_features, "CPUINFO", cpuinfo)
    return "bf16" in request.param


@pytest.mark.parametrize("precision", ["float32", "tf32", "mixed_float16", "mixed_bfloat16"])
def test_the_cpu_decides_what_is_multiplied_in(has_bfloat16, precision, tiny_experiment):
    config = load_experiment(tiny_experiment, ["--precision", precision])
    emulated = precision == "mixed_bfloat16" and not has_bfloat16
    assert emulates_bfloat16(config) is emulated
    reduced = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
    assert compute_dtype(config) == ("float32" if emulated else reduced.get(precision, "float32"))


@pytest.mark.slow
def test_a_run_in_bfloat16_works_on_any_cpu(tiny_experiment, tmp_path):
    flags = ["--runs", str(tmp_path), "--precision", "mixed_bfloat16", "--stages.segment.steps", "0"]
    trainer = Trainer(load_experiment(tiny_experiment, [*flags, "--stages.decision.steps", "0"]))
    assert ("is emulated" in trainer.describe_start()) == emulates_bfloat16(trainer.config)
    assert trainer.run().has_result
