import errno
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from segdec.errors import ConfigError
from training.data.array_cache import ArrayCache

HEIGHT, WIDTH = 512, 256  # 0.26 MB with image and features


def example(number):
    image = np.full((HEIGHT, WIDTH, 1), number, np.uint8)
    image[0, 0] = 255 - number
    features = np.full((HEIGHT // 2, WIDTH // 4, 4), number / 4, np.float16)
    features[0, 0] = -number
    return {"image": image, "features": features}


def check_arrays(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name, strict=True)


def check(cache, kept, count):
    """Exactly the examples `kept` of `count` are there, and as they were put."""
    for number in range(count):
        found = cache.get(number)
        assert (found is not None) == (number in kept)
        if found is not None:
            check_arrays(found, example(number))


def filled(count, *arguments):
    cache = ArrayCache(*arguments)
    for number in range(count):
        cache.put(number, example(number))
    return cache


def test_memory_then_disk_then_nothing(tmp_path):
    check(filled(9, 1), range(3), 9)  # 1 MB holds three
    check(filled(9, 1, tmp_path, 1), range(6), 9)
    check(filled(9, 0, tmp_path, 2), range(7), 9)
    check(filled(9, 0), range(0), 9)


def test_no_file_remains_after_a_kill(tmp_path):
    code = (
        "import os, signal, sys; from pathlib import Path; import numpy as np;"
        "from training.data.array_cache import ArrayCache;"
        "cache = ArrayCache(0, Path(sys.argv[1]), 1);"
        "cache.put(0, {'image': np.ones((8, 8, 1), np.uint8), 'mask': np.ones((8, 8), np.uint8)});"
        "assert cache.get(0) is not None; os.kill(os.getpid(), signal.SIGKILL)"
    )
    root = Path(__file__).parents[3]
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=root, check=False).returncode == -9
    assert list(tmp_path.iterdir()) == []


def test_several_threads_may_use_it(tmp_path):
    cache = ArrayCache(1, tmp_path, 4)

    def use(number):
        cache.put(number % 12, example(number % 12))
        return cache.get(number % 12)

    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(use, range(120))):
            check_arrays(found, example(number % 12))
    check(cache, range(12), 12)


@pytest.mark.parametrize("write", ["fails", "is cut short"])
def test_a_full_disk_causes_one_warning(tmp_path, monkeypatch, capsys, write):
    cache = filled(2, 0, tmp_path, 4)
    whole = os.pwrite

    def full(descriptor, data, offset):
        if write == "fails":
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(descriptor, data[:100], offset)

    monkeypatch.setattr(os, "pwrite", full)
    for number in range(2, 5):
        cache.put(number, example(number))
    printed = capsys.readouterr().err
    assert printed.count("warning: cannot write to data.cache_folder (No space left on device)") == 1
    assert printed.count("\n") == 1
    check(cache, range(2), 5)


def test_a_missing_folder_is_rejected(tmp_path):
    with pytest.raises(ConfigError, match=r"data.cache_folder = '.*nowhere': cannot create a file \(No such"):
        ArrayCache(1, tmp_path / "nowhere", 1)


def test_reserved_space_is_separate(tmp_path):
    size = sum(array.nbytes for array in example(0).values())
    whole = ArrayCache(1, tmp_path, 1)
    part = whole.reserve(10**6 + size)  # all of the memory, and some of the disk
    assert (part.free_bytes, whole.free_bytes) == (10**6 + size, 10**6 - size)
    for number in range(9):
        whole.put(number, example(number))
    for number in range(9, 18):
        part.put(number, example(number))
    check(whole, range(2), 9)
    check(part, range(9, 13), 18)
    assert ArrayCache(1).reserve(2 * 10**6).free_bytes == 10**6
