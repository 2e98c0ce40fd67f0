import ctypes
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from segdec.process_memory import (
    control_group_limits,
    measure_peak,
    memory_limit,
    release_free_memory,
    resident_bytes,
)

MEBI = 2**20


class Kernel:
    """Tells of a process as /proc does, and of control groups below `groups`."""

    def __init__(self, folder: Path) -> None:
        self.proc = folder / "proc"
        self.groups = folder / "groups"
        (self.proc / "self").mkdir(parents=True)

    def tell(self, group: str, mount: str) -> list[int]:
        (self.proc / "self" / "cgroup").write_text(group)
        (self.proc / "self" / "mountinfo").write_text(
            "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n" + mount.format(place=self.groups)
        )
        return control_group_limits(self.proc)

    def limit(self, path: str, text: str) -> None:
        file = self.groups / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    return Kernel(tmp_path)


VERSION_2 = "30 22 0:26 / {place} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
VERSION_1 = "31 22 0:27 {root} {{place}} rw shared:5 - cgroup cgroup rw,memory\n"
CPU = "32 22 0:28 / {place} rw - cgroup cgroup rw,cpu,cpuacct\n"


def test_limit_of_the_group_and_of_all_above_it(kernel: Kernel) -> None:
    kernel.limit("memory.max", "max\n")
    kernel.limit("pods/memory.max", "4294967296\n")
    kernel.limit("pods/one/memory.max", "max\n")
    kernel.limit("other/memory.max", "1\n")
    assert kernel.tell("0::/pods/one\n", VERSION_2) == [2**32]


def test_limit_of_a_container_that_sees_its_group_as_the_topmost(kernel: Kernel) -> None:
    kernel.limit("memory.max", "2147483648\n")
    assert kernel.tell("0::/\n", VERSION_2) == [2**31]
    assert kernel.tell("0::/../host/path\n", VERSION_2) == [2**31]


def test_limit_of_version_1(kernel: Kernel) -> None:
    kernel.limit("memory.limit_in_bytes", "3000000000\n")
    kernel.limit("inner/memory.limit_in_bytes", "1000000000\n")
    groups = "5:cpu,cpuacct:/docker/a\n4:memory:/docker/a/inner\n1:name=systemd:/\n"
    assert kernel.tell(groups, CPU + VERSION_1.format(root="/docker/a")) == [10**9, 3 * 10**9]
    assert kernel.tell("4:memory:/host/only\n", VERSION_1.format(root="/docker/a")) == [3 * 10**9]


def test_systems_without_limits(kernel: Kernel, tmp_path: Path) -> None:
    assert kernel.tell("0::/\n", VERSION_2) == []
    assert kernel.tell("0::/\n", "") == []
    assert control_group_limits(tmp_path / "nowhere") == []
    assert memory_limit() > 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not tell")
def test_peak_is_that_of_the_work_and_not_of_what_came_before() -> None:
    np.ones(200 * MEBI, np.uint8)
    before = resident_bytes()
    assert before is not None
    peak = measure_peak(lambda: np.ones(100 * MEBI, np.uint8))
    assert peak is not None
    assert 90 * MEBI < peak - before < 150 * MEBI
    release_free_memory()


FREED = """
import ctypes, numpy as np
from segdec.process_memory import give_back_memory, make_memory_returnable, resident_bytes
make_memory_returnable()
before = resident_bytes()
blocks = [np.ones(40 * 2**20, np.uint8) for _ in range(5)]
del blocks
kept = resident_bytes()
give_back_memory()
print(kept - before, resident_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's allocator")
def test_free_memory_is_kept_until_it_is_given_back() -> None:
    if not hasattr(ctypes.CDLL(None), "malloc_trim"):
        pytest.skip("another C library")
    done = subprocess.run([sys.executable, "-c", FREED], capture_output=True, text=True, check=True)
    kept, left = map(int, done.stdout.split())
    assert kept > 190 * MEBI
    assert left < 30 * MEBI
