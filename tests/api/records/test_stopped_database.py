"""A database that goes while inspections are recorded, and comes back."""

import pytest

from tests.api.records.recording_clients import Clients, check, start


@pytest.mark.slow
def test_what_was_answered_outlives_a_stop_of_the_database(postgres, make_database, tmp_path):
    url, folder, clients = make_database(), tmp_path / "kept", Clients()
    process, clients.url = start(folder, url)
    clients.start()
    for _ in range(2):
        clients.wait_for_answers(20)
        postgres.stop("immediate")
        clients.wait_for_refusals(8)
        postgres.start()
    clients.wait_for_answers(20)
    clients.end()
    process.terminate()
    process.wait()
    process.stdout.close()
    assert check(folder, url, clients) >= len(clients.answers) >= 60
