"""A server that reaches its limit of open files."""

import http.client
import resource
import socket
import time
from pathlib import Path

import pytest

from segdec.images import encode_png
from tests.api.conftest import PNG, part_image


def inspect(connection, brightness):
    body = encode_png(part_image(brightness=brightness))
    connection.request("POST", "/v1/inspect", body, PNG)
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


@pytest.mark.slow
def test_the_limit_of_open_files_is_logged_once_with_what_to_do(start_stubbed, tmp_path):
    server = start_stubbed("--record", "required", "--record-folder", str(tmp_path / "record"))
    connection = http.client.HTTPConnection(*server.address, timeout=30)
    assert inspect(connection, 1)[0] == 200
    limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
    limit = len(list(Path(f"/proc/{server.process.pid}/fd").iterdir()))
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (limit, limits[1]))
    refused = [socket.create_connection(server.address) for _ in range(3)]
    status, text = inspect(connection, 2)
    assert (status, "the service has too many open files" in text) == (503, True)
    server.wait_for_log(f"No more files can be opened and no connections accepted. The limit of {limit} open")
    for one in refused:
        one.close()
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
    server.wait_for_log("Files can be opened again")
    while inspect(connection, 3)[0] != 200:
        time.sleep(0.05)
    connection.close()
    log = server.log.read_text()
    assert "Traceback" not in log
    assert log.count("No more files can be opened") == log.count("Inspections cannot be recorded") == 1
