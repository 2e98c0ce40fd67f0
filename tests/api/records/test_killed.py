"""A service that is killed while it records: what was answered is there, and nothing is there twice."""

import random
import signal

import pytest

from tests.api.records.recording_clients import Clients, check, start
from tests.marks import slow_case


@pytest.mark.parametrize("kills", [1, slow_case(20)])
def test_what_was_answered_outlives_a_kill_and_is_there_once(database_url, tmp_path, kills):
    folder, clients, moments = tmp_path / "kept", Clients(), random.Random(0)
    process, clients.url = start(folder, database_url)
    clients.start()
    for _ in range(kills):
        clients.wait_for_answers(moments.randrange(1, 40))
        clients.ended.wait(moments.uniform(0.0, 0.05))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        process, clients.url = start(folder, database_url)
    clients.end()
    process.terminate()
    process.wait()
    process.stdout.close()
    process, _ = start(folder, database_url)  # its start sweeps
    process.terminate()
    process.wait()
    process.stdout.close()
    assert check(folder, database_url, clients) >= len(clients.answers) > 0
