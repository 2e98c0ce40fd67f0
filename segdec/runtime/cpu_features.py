"""What the CPU is called and computes by itself: whether it is fast in bfloat16."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Features that multiply in bfloat16, of x86 and of ARM."""


def cpu_features() -> frozenset[str]:
    """Reads the names of the instruction sets, as Linux writes them; none on another system."""
    sets = [set(values.split()) for name, values in _read_fields() if name in ("flags", "Features")]
    return frozenset(set.intersection(*sets)) if sets else frozenset()  # what all cores have


def cpu_name() -> str:
    """Reads what the processor is called; empty where Linux does not say."""
    return next((value for name, value in _read_fields() if name == "model name"), "")


def has_bfloat16() -> bool:
    """Returns whether the CPU multiplies in bfloat16; others take a detour by float32, and gain nothing."""
    return not BFLOAT16.isdisjoint(cpu_features())


def _read_fields() -> list[tuple[str, str]]:
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    fields = (line.partition(":") for line in lines)
    return [(name.strip(), values.strip()) for name, _, values in fields]
