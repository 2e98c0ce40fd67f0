"""Two services must not use one SQLite record."""

import pytest

from api.database.service_lock import ServiceLock
from segdec.errors import ConfigError
from tests.api.conftest import ServiceClient


def test_a_second_service_is_refused_until_the_first_one_ends(make_app, tmp_path, part):
    (tmp_path / "record").mkdir()
    other_service = ServiceLock(tmp_path / "record" / "record.db")
    other_service.acquire()
    app = make_app(record="best-effort", record_folder=tmp_path / "record")
    with pytest.raises(ConfigError, match=r"Another service uses the record .*record\.db.* Stop it"):
        ServiceClient(app).__enter__()
    other_service.release()
    with ServiceClient(make_app(record="required", record_folder=tmp_path / "record")) as client:
        answer = client.post("/v1/inspect", content=part, headers={"Content-Type": "image/png"})
        assert answer.status_code == 200
        with pytest.raises(ConfigError):
            ServiceLock(tmp_path / "record" / "record.db").acquire()
    other_service.acquire()
    other_service.release()
