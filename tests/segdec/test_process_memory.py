import ctypes
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from segdec.process_memory import measure_peak_memory, memory_limit, release_free_memory, resident_bytes

MEBI = 2**20
SMALL, SMALLER = 2**21, 2**20
"""Bytes, below the memory of any machine."""


@pytest.fixture
def limit_of(tmp_path: Path) -> Callable[..., int]:
    """The limit of a process in `group`, as /proc shows it, with these files of control groups."""

    def limit(group: str, **files: object) -> int:
        proc, groups = tmp_path / "proc", tmp_path / "groups"
        (proc / "self").mkdir(parents=True)
        (proc / "self" / "cgroup").write_text(group)
        for path, text in files.items():
            file = groups / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")
        return memory_limit(proc, groups)

    return limit


V1 = "memory.limit_in_bytes"


@pytest.mark.parametrize(
    ("group", "files", "expected"),
    [
        ("0::/pods/one\n", {"pods/memory.max": SMALL, "pods/one/memory.max": "max"}, SMALL),
        ("0::/\n", {"memory.max": SMALL}, SMALL),
        ("0::/../host/path\n", {"memory.max": SMALL}, SMALL),  # a container that sees the path of its host
        ("5:cpu:/a\n4:memory:/a/b\n", {f"memory/a/{V1}": SMALL, f"memory/a/b/{V1}": SMALLER}, SMALLER),
        ("4:memory:/host/only\n", {f"memory/{V1}": SMALL}, SMALL),
        ("0::/\n", {"memory.max": "max"}, memory_limit(Path("nowhere"))),
        ("", {}, memory_limit(Path("nowhere"))),
    ],
)
def test_limit_is_the_lowest_of_the_group_and_all_above_it(limit_of, group, files, expected):
    assert limit_of(group, **files) == expected
    assert expected > 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux reports it")
def test_peak_is_that_of_the_work_and_not_of_what_came_before() -> None:
    np.ones(400 * MEBI, np.uint8)
    release_free_memory()  # of other tests in this process
    before = resident_bytes()
    assert before is not None
    peak = measure_peak_memory(lambda: np.ones(200 * MEBI, np.uint8))
    assert peak is not None
    assert 100 * MEBI < peak - before < 350 * MEBI
    release_free_memory()


FREED = """
import numpy as np
from segdec.process_memory import make_memory_returnable, release_free_memory, resident_bytes
make_memory_returnable()
before = resident_bytes()
blocks = [np.ones(8 * 2**20, np.uint8) for _ in range(5)]
del blocks
kept = resident_bytes()
release_free_memory()
print(kept - before, resident_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_free_memory_is_kept_until_it_is_released() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("another C library")
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    kept, left = map(int, done.stdout.split())
    assert kept > 36 * MEBI
    assert left < 12 * MEBI
