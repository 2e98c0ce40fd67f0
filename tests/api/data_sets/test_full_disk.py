"""A full disk: a photograph is stored completely or not at all."""

import hashlib

from tests.api.conftest import PNG, problem
from tests.api.data_sets.filled_data_set import photograph_file
from tests.api.engineer_client import EngineerClient
from tests.api.record.small_disk import fill


def test_a_full_disk_refuses_photographs_and_keeps_those_that_it_has(disk):
    folder = disk / "record"
    with EngineerClient(folder, record_free_share=0.0, record_reserved_mb=0.1) as client:
        path = f"/v1/data-sets/{client.post('/v1/data-sets', json={'name': 'a'}).json()['id']}"

        def add(number):
            file = photograph_file(number)
            return client.post(f"{path}/photographs", content=file.data, headers=PNG)

        assert add(0).status_code == 201
        fill(disk)
        for number in range(1, 4):
            answer = add(number)
            assert problem(answer) == (507, "no_space")
            assert "The photograph cannot be stored" in answer.json()["detail"]
        assert problem(client.post(f"{path}/versions", json={})) == (409, "nothing_labelled")
        assert client.get(path).json()["counts"]["photographs"] == 1
        (disk / "other").unlink()
        assert add(1).status_code == 201
        assert client.get(f"{path}/photographs/1/image").content == photograph_file(0).data
    files = {found.name: found.read_bytes() for found in (folder / "data_sets").glob("??/*")}
    assert set(files) == {photograph_file(number).sha256.hex() for number in (0, 1)}
    assert all(hashlib.sha256(data).hexdigest() == name for name, data in files.items())
    assert not list((folder / "data_sets/unsettled").iterdir())
