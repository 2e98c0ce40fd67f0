import errno
import os
from concurrent.futures import ThreadPoolExecutor

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


def check(cache, kept, count):
    """Exactly the examples `kept` of `count` are there, and as they were put."""
    for number in range(count):
        cached = cache.get(number)
        assert (cached is not None) == (number in kept)
        for name, array in example(number).items() if cached else ():
            np.testing.assert_array_equal(cached[name], array, err_msg=name, strict=True)


def fill(cache, numbers):
    for number in numbers:
        cache.put(number, example(number))
    return cache


def test_memory_then_disk_then_nothing(tmp_path):
    check(fill(ArrayCache(1), range(9)), range(3), 9)  # 1 MB holds three
    check(fill(ArrayCache(1, tmp_path, 1), range(9)), range(6), 9)
    check(fill(ArrayCache(0, tmp_path, 2), range(9)), range(7), 9)
    check(fill(ArrayCache(0), range(9)), range(0), 9)
    assert list(tmp_path.iterdir()) == []  # the file has no name: nothing remains after a kill


def test_several_threads_may_use_it(tmp_path):
    cache = ArrayCache(1, tmp_path, 4)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: fill(cache, [number % 12]).get(number % 12), range(120)))
    check(cache, range(12), 12)


@pytest.mark.parametrize("write", ["fails", "is cut short"])
def test_a_full_disk_causes_one_warning(tmp_path, monkeypatch, capsys, write):
    cache = fill(ArrayCache(0, tmp_path, 4), range(2))
    whole = os.pwrite

    def full(descriptor, data, offset):
        if write == "fails":
            raise OSError(errno.ENOSPC, "No space left on device")
        return whole(descriptor, data[:100], offset)

    monkeypatch.setattr(os, "pwrite", full)
    fill(cache, range(2, 5))
    printed = capsys.readouterr().err
    assert "warning: cannot write to data.cache_folder (No space left on device)" in printed
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
    check(fill(whole, range(9)), range(2), 9)
    check(fill(part, range(9, 18)), range(9, 13), 18)
