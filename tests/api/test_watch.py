"""`segdec watch` killed again and again beside a recording service: each file has exactly one row."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter

import numpy as np
import pytest
from sqlalchemy import select

from api.database.database import open_database
from api.record.tables import inspections
from segdec.images import encode_png
from tests.api.conftest import ROOT
from tests.api.record.recording_clients import RecordingService

FILES = 24
KILLS = 3


def part_of(number):
    return number - (number % 3 == 2)


def drop(folder, number):
    """Writes a photograph in pieces; every third has the name of another, every fourth the same pixels."""
    pixels = np.random.default_rng(number if number % 4 else 0).integers(0, 256, (16, 24, 1), np.uint8)
    data = encode_png(pixels)
    name = f"{part_of(number)}_part.png"
    while (folder / name).exists():  # else it would take the place of one that nobody has seen
        threading.Event().wait(0.01)
    with (folder / f".{name}").open("wb") as file:
        for part in (data[:100], data[100:]):
            file.write(part)
            file.flush()
            os.fsync(file.fileno())
    (folder / f".{name}").rename(folder / name)


def watch(folder, url):
    command = [sys.executable, "-m", "segdec", "watch", str(folder), "--url", url, "--station", "cam1"]
    command += ["--part-pattern", "^(?P<part>[0-9]+)_", "--settle", "0.1", "--look-every", "1", "--answers"]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)


@pytest.mark.slow
def test_each_file_has_one_row_whenever_the_command_is_killed(tmp_path):
    folder, database, moments = tmp_path / "camera", f"sqlite:///{tmp_path}/record.db", random.Random(0)
    folder.mkdir()
    service = RecordingService(tmp_path / "kept", database)
    camera = threading.Thread(target=lambda: [drop(folder, number) for number in range(FILES)])
    process = watch(folder, service.url)
    camera.start()

    def moved():
        assert not list(folder.glob("failed/*"))
        return len(list(folder.glob("done/*.png")))

    for kill in range(1, KILLS + 1):
        while moved() < kill * FILES // (KILLS + 2):
            assert process.poll() is None
            threading.Event().wait(0.01)
        threading.Event().wait(moments.uniform(0, 0.05))
        process.kill()
        process.wait()
        process = watch(folder, service.url)
    camera.join()
    while moved() < FILES:
        assert process.poll() is None
        threading.Event().wait(0.01)
    process.send_signal(signal.SIGTERM)
    assert process.wait() == 0
    service.stop()
    engine = open_database(database)
    with engine.connect() as connection:
        rows = connection.execute(select(inspections.c.part_id, inspections.c.station)).all()
    engine.dispose()
    assert Counter(rows) == Counter((str(part_of(number)), "cam1") for number in range(FILES))
    assert len(list(folder.glob("done/*.json"))) == FILES
    assert not list(folder.glob(".inspecting/*/*"))
