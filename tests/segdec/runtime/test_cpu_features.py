import pytest

from segdec.runtime import cpu_features

GENOA = """\
processor\t: 0
model name\t: AMD EPYC 9R14
flags\t\t: fpu sse2 avx2 avx512f avx512_vnni avx512_bf16

processor\t: 1
model name\t: AMD EPYC 9R14
flags\t\t: fpu sse2 avx2 avx512f avx512_vnni avx512_bf16
"""
ALDER_LAKE = "processor\t: 0\nflags\t\t: fpu sse2 avx2 avx_vnni\nvmx flags\t: vnmi amx_bf16\n"
SAPPHIRE_RAPIDS = "processor\t: 0\nflags\t\t: fpu avx512f amx_bf16 amx_int8\n"
GRAVITON_3 = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm bf16\n"
UNEQUAL_CORES = "flags\t: fpu avx512_bf16\nflags\t: fpu\n"


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(cpu_features, "CPUINFO", path)
    return path


@pytest.mark.parametrize(
    ("text", "bfloat16"),
    [
        (GENOA, True),
        (ALDER_LAKE, False),
        (SAPPHIRE_RAPIDS, True),
        (GRAVITON_3, True),
        (UNEQUAL_CORES, False),
        ("", False),
    ],
    ids=["genoa", "alder lake", "sapphire rapids", "graviton 3", "unequal", "empty"],
)
def test_bfloat16(cpuinfo, text, bfloat16):
    cpuinfo.write_text(text, encoding="utf-8")
    assert cpu_features.has_bfloat16() is bfloat16


def test_system_without_cpuinfo(cpuinfo):
    assert not cpuinfo.exists()
    assert cpu_features.cpu_features() == frozenset()
    assert not cpu_features.has_bfloat16()


@pytest.mark.parametrize(("text", "name"), [(GENOA, "AMD EPYC 9R14"), (GRAVITON_3, "")])
def test_name_of_the_processor(text, name, cpuinfo):
    cpuinfo.write_text(text)
    assert cpu_features.cpu_name() == name
