"""Name and instruction sets of the CPU."""

from pathlib import Path

CPUINFO = Path("/proc/cpuinfo")

BFLOAT16 = {"avx512_bf16", "amx_bf16", "bf16"}
"""Instruction sets of x86 and ARM that multiply in bfloat16."""


def cpu_features() -> frozenset[str]:
    """Reads the names of the instruction sets on Linux; none on other systems."""
    sets = [set(values.split()) for name, values in _read_fields() if name in ("flags", "Features")]
    return frozenset(set.intersection(*sets)) if sets else frozenset()  # common to all cores


def cpu_name() -> str:
    """Reads the name of the processor; empty if unknown."""
    return next((value for name, value in _read_fields() if name == "model name"), "")


def has_bfloat16() -> bool:
    """Returns whether the CPU multiplies in bfloat16; others convert to float32 and gain nothing."""
    return not BFLOAT16.isdisjoint(cpu_features())


def _read_fields() -> list[tuple[str, str]]:
    try:
        lines = CPUINFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    fields = (line.partition(":") for line in lines)
    return [(name.strip(), values.strip()) for name, _, values in fields]
