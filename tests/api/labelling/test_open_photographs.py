import numpy as np
import pytest

from api.labelling import open_photographs
from api.labelling.open_photographs import OpenPhotographs
from api.labelling.segmenter import ClickSegmenter


@pytest.mark.anyio
async def test_the_photographs_used_last_stay_prepared(monkeypatch):
    size = ClickSegmenter(np.zeros((10, 10), np.uint8)).nbytes
    assert size > 10 * 10 * 15 * 4  # with the features
    monkeypatch.setattr(open_photographs, "MAX_BYTES", 2.5 * size)
    opened, prepared = OpenPhotographs(), []

    async def find(number):
        async def prepare():
            prepared.append(number)
            return ClickSegmenter(np.zeros((10, 10), np.uint8))

        return await opened.find(bytes([number]), prepare)

    first = await find(1)
    await find(2)
    assert await find(1) is first
    await find(3)  # 2 was used longest ago
    assert await find(1) is first
    await find(2)
    assert prepared == [1, 2, 3, 2]


@pytest.mark.anyio
async def test_a_large_photograph_stays_while_it_is_the_latest(monkeypatch):
    monkeypatch.setattr(open_photographs, "MAX_BYTES", 1)
    opened, prepared = OpenPhotographs(), []

    async def prepare():
        prepared.append(1)
        return ClickSegmenter(np.zeros((10, 10), np.uint8))

    assert await opened.find(b"a", prepare) is await opened.find(b"a", prepare)
    assert prepared == [1]
