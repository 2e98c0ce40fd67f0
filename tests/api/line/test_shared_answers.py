"""Answers that many screens share."""

import asyncio

import pytest

from api.line.shared_answers import MAX_AGE_S, SharedAnswers


class Record:
    """Counts how often it is read, and can fail."""

    def __init__(self):
        self.read, self.changes, self.now, self.failure = [], 0, 0.0, None
        self.gate = asyncio.Event()
        self.gate.set()
        self.answers = SharedAnswers(self.answer, lambda: self.changes, lambda: self.now)

    async def answer(self, station):
        self.read.append(station)
        await self.gate.wait()
        if self.failure:
            raise self.failure
        return f"{station} {len(self.read)}".encode()


@pytest.mark.anyio
async def test_an_answer_is_read_once_for_all_who_ask():
    record = Record()
    record.gate.clear()
    asking = [asyncio.create_task(record.answers.get("a")) for _ in range(200)]
    await asyncio.sleep(0)
    asking[0].cancel()
    record.gate.set()
    found = await asyncio.gather(*asking[1:])
    assert (set(found), record.read) == ({b"a 1"}, ["a"])


@pytest.mark.anyio
async def test_changes_and_age_end_the_sharing():
    record = Record()
    assert [await record.answers.get("a") for _ in range(2)] == [b"a 1", b"a 1"]
    record.changes += 1
    assert await record.answers.get("a") == b"a 2"
    record.now += MAX_AGE_S
    assert await record.answers.get("a") == b"a 2"
    record.now += 0.01
    assert await record.answers.get("a") == b"a 3"
    assert await record.answers.get(None) == b"None 4"


@pytest.mark.anyio
async def test_a_failure_is_raised_and_not_kept():
    record = Record()
    record.failure = OSError("no disk")
    with pytest.raises(OSError):
        await record.answers.get("a")
    record.failure, record.now = None, 1.0
    assert await record.answers.get("a") == b"a 2"


@pytest.mark.anyio
async def test_old_answers_are_removed():
    record = Record()
    for number in range(100):
        record.now += 1
        await record.answers.get(str(number))
    assert len(record.answers._answers) == 1
