"""What the CPU computes by itself: whether it is fast in bfloat16."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Features that multiply in bfloat16, of x86 and of ARM."""


def cpu_features() -> frozenset[str]:
    """Reads the names of the instruction sets, as Linux writes them; none on another system."""
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return frozenset()
    fields = (line.partition(":") for line in lines)
    sets = [set(values.split()) for name, _, values in fields if name.strip() in ("flags", "Features")]
    return frozenset(set.intersection(*sets)) if sets else frozenset()  # what all cores have


def computes_bfloat16() -> bool:
    """Returns whether the CPU multiplies in bfloat16; others take a detour by float32, and gain nothing."""
    return not BFLOAT16.isdisjoint(cpu_features())
