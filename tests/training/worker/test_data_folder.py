import pytest

from segdec.errors import RunError
from training.worker.data_folder import path_inside


def test_a_service_cannot_make_a_worker_write_outside_its_folder(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "link").symlink_to(tmp_path)
    assert path_inside(tmp_path / "job", "runs/a/log.jsonl") == tmp_path / "job" / "runs/a/log.jsonl"
    for path in ("../other", "/etc/passwd", "runs/../../x", "link/x"):
        with pytest.raises(RunError, match="Expected one inside the folder of the job"):
            path_inside(tmp_path / "job", path)
