"""The file of events contains complete lines only."""

import asyncio
import os

import pytest

from api.delivery.json_lines import JsonLines
from api.delivery.sink import DeliveryError, OutboxMessage


def message(number):
    return OutboxMessage(number, f"e{number}", "inspected", "a", f'{{"specversion":"1.0","id":"e{number}"}}')


def append(path, *numbers):
    async def main():
        sink = JsonLines(path)
        for number in numbers:
            await sink.deliver(message(number))
        await sink.close()

    asyncio.run(main())


def lines(*numbers):
    return "".join(f"{message(number).event}\n" for number in numbers)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "events.jsonl"


@pytest.mark.parametrize("torn", [0, 1, len(lines(2)) - 1])
def test_each_event_is_a_line_after_a_crash(path, torn):
    append(path, 1)
    path.write_text(lines(1) + lines(2)[:torn])
    append(path, 2, 3)
    assert path.read_text() == lines(1, 2, 3)


def test_text_of_another_program_is_kept(path):
    path.write_text("notes\nwithout an end")
    append(path, 1)
    assert path.read_text() == f"notes\nwithout an end\n{lines(1)}"


def test_a_moved_or_deleted_file_is_created_again(path):
    async def main():
        sink = JsonLines(path)
        await sink.deliver(message(1))
        path.rename(path.with_suffix(".1"))
        await sink.deliver(message(2))
        path.unlink()
        await sink.deliver(message(3))
        await sink.close()

    asyncio.run(main())
    assert path.with_suffix(".1").read_text() == lines(1)
    assert path.read_text() == lines(3)


def test_a_full_disk_leaves_no_incomplete_line(path, monkeypatch):
    write = os.write

    def write_some(descriptor, data):
        if len(data) < 20:
            raise OSError(28, "No space left on device")
        return write(descriptor, bytes(data)[:-10])

    async def main():
        sink = JsonLines(path)
        await sink.deliver(message(1))
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", write_some)
            with pytest.raises(DeliveryError, match="No space left") as failure:
                await sink.deliver(message(2))
        assert failure.value.cause == "unreachable"
        assert path.read_text() == lines(1)
        await sink.deliver(message(2))
        await sink.close()

    asyncio.run(main())
    assert path.read_text() == lines(1, 2)


def test_a_missing_folder_counts_as_unreachable(path):
    with pytest.raises(DeliveryError, match="No such file") as failure:
        append(path / "missing" / "events", 1)
    assert failure.value.cause == "unreachable"
