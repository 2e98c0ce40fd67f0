import pytest

from segdec.runtime import cpu_features

GENOA = "processor\t: 0\nmodel name\t: AMD EPYC 9R14\nflags\t\t: fpu sse2 avx2 avx512f avx512_bf16\n\n" * 2
ALDER_LAKE = "processor\t: 0\nflags\t\t: fpu sse2 avx2 avx_vnni\nvmx flags\t: vnmi amx_bf16\n"
SAPPHIRE_RAPIDS = "processor\t: 0\nflags\t\t: fpu avx512f amx_bf16 amx_int8\n"
GRAVITON_3 = "processor\t: 0\nFeatures\t: fp asimd asimddp i8mm bf16\n"
UNEQUAL_CORES = "flags\t: fpu avx512_bf16\nflags\t: fpu\n"


@pytest.fixture
def cpuinfo(tmp_path, monkeypatch):
    path = tmp_path / "cpuinfo"
    monkeypatch.setattr(cpu_features, "CPUINFO", path)
    return path


def test_bfloat16(cpuinfo):
    for text in (GENOA, SAPPHIRE_RAPIDS, GRAVITON_3):
        cpuinfo.write_text(text)
        assert cpu_features.has_bfloat16()
    for text in (ALDER_LAKE, UNEQUAL_CORES, ""):
        cpuinfo.write_text(text)
        assert not cpu_features.has_bfloat16()


@pytest.mark.usefixtures("cpuinfo")
def test_system_without_cpuinfo():
    assert cpu_features.cpu_features() == frozenset()
    assert not cpu_features.has_bfloat16()


@pytest.mark.parametrize(("text", "name"), [(GENOA, "AMD EPYC 9R14"), (GRAVITON_3, "")])
def test_name_of_the_processor(text, name, cpuinfo):
    cpuinfo.write_text(text)
    assert cpu_features.cpu_name() == name
