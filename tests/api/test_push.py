"""`python -m datasets push` against a running service."""

import httpx
import pytest

from api.app import create_app
from api.settings import Settings
from datasets.__main__ import main
from datasets.layouts.toy import make_sample, write_toy
from datasets.loading import load_dataset
from segdec.images import write_png
from tests.api.conftest import StubPredictor
from tests.api.engineer_client import KEY, write_keys
from tests.api.live_server import served


@pytest.fixture
def url(tmp_path):
    settings = {"model": "unused", "record": "required", "record_folder": tmp_path / "record"}
    settings["admin_keys"] = write_keys(tmp_path)
    with served(create_app(Settings.model_validate(settings), StubPredictor())) as (host, port):
        yield f"http://{host}:{port}"


def test_push_sends_and_repeats(tmp_path, url, capsys):
    write_toy(tmp_path / "own", 18, size=32, classes=4)
    (tmp_path / "key").write_text(KEY)
    command = ["push", str(tmp_path / "own"), "--layout", "toy", "--url", url, "--data-set", "Toys"]
    with pytest.raises(SystemExit):
        main(command)
    assert f"{url} requires an API key" in capsys.readouterr().err
    command += ["--key-file", str(tmp_path / "key")]
    main(command)
    assert "18 photographs sent, 0 were there; 18 labelled" in capsys.readouterr().out
    main(command)
    assert "0 photographs sent, 18 were there; 0 labelled" in capsys.readouterr().out
    (stored,) = httpx.get(f"{url}/v1/data-sets", headers={"X-API-Key": KEY}).json()["data_sets"]
    assert stored["name"] == "Toys" and stored["counts"]["labels"]["good"] == 9
    assert len(stored["classes"]) == 3
    page = httpx.get(f"{url}/v1/data-sets/{stored['id']}/photographs", headers={"X-API-Key": KEY}).json()
    splits = {record.name: record.split for record in load_dataset("toy", tmp_path / "own").items}
    assert {one["name"]: one["split"] for one in page["photographs"]} == splits


def test_classes_that_were_said_to_be_defects_are_sent(tmp_path, url):
    for number, folder in enumerate(("good", "no burr")):
        (tmp_path / "own" / folder).mkdir(parents=True)
        write_png(tmp_path / "own" / folder / "a.png", make_sample(number).image)
    (tmp_path / "own" / "supervision.txt").write_text("label no burr")
    (tmp_path / "key").write_text(KEY)
    target = ["--url", url, "--data-set", "Rings", "--key-file", str(tmp_path / "key")]
    main(["push", str(tmp_path / "own"), "--layout", "folder", "--defect", "no burr", *target])
    (stored,) = httpx.get(f"{url}/v1/data-sets", headers={"X-API-Key": KEY}).json()["data_sets"]
    assert (stored["classes"], stored["counts"]["labels"]) == (["no burr"], {"good": 1, "no burr": 1})


@pytest.mark.slow
def test_push_adds_the_split_of_photographs_that_were_sent_without_one(tmp_path, url, capsys):
    write_toy(tmp_path / "own", 18, size=32)
    (tmp_path / "key").write_text(KEY)
    headers = {"X-API-Key": KEY}
    number = httpx.post(f"{url}/v1/data-sets", headers=headers, json={"name": "Toys"}).json()["id"]
    first, second, *_ = load_dataset("toy", tmp_path / "own").items
    path = f"{url}/v1/data-sets/{number}/photographs"
    for record, split in ((first, {}), (second, {"split": "fold_9"})):
        sent = headers | {"Content-Type": "image/png"}
        query = {"name": record.name, **split}
        httpx.post(
            path, headers=sent, params=query, content=record.image_file.read_bytes()
        ).raise_for_status()
    command = ["push", str(tmp_path / "own"), "--layout", "toy", "--url", url, "--data-set", "Toys"]
    main([*command, "--key-file", str(tmp_path / "key")])
    assert "1 got a split, 1 keep another split" in capsys.readouterr().out
    stored = {one["name"]: one["split"] for one in httpx.get(path, headers=headers).json()["photographs"]}
    assert (stored[first.name], stored[second.name]) == (first.split, "fold_9")
