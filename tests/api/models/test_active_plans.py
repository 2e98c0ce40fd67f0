"""Inspection plans of the service: stored, activated for stations, and deciding about photographs."""

import json
import time
from base64 import b64encode
from functools import partial
from zoneinfo import ZoneInfo

import pytest
from sqlalchemy import select

from api.app import create_app
from api.delivery.line_state import LineStateReader
from api.models import plans as stored_plans
from api.record.events import inspected_event
from api.record.filters import Filters
from api.record.tables import inspections
from api.review.reviewed_export import describe_skipped, export_reviewed
from api.settings import Settings
from segdec.__main__ import main
from segdec.client import Client
from segdec.errors import ArtifactError
from segdec.images import encode_png
from segdec.schemas import InspectAnswer
from tests.api import live_server
from tests.api.conftest import PNG, part_image
from tests.api.models.conftest import ADMIN, ask, served
from tests.api.models.stub_models import NAME

PHOTOGRAPH = {"width": 40, "height": 24, "mm_per_px": 0.1}
EVERYWHERE = {"rectangle": {"corner": [0, 0], "width": 40, "height": 24}}
ANY_IS_ACCEPTED = {"rules": [{"then": "accept"}]}


def plan_of(name="housing", **zone):
    return {"name": name, "photograph": PHOTOGRAPH, "zones": {"surface": EVERYWHERE | zone}}


ACCEPTS, STOPS = plan_of(**ANY_IS_ACCEPTED), plan_of(rules=[{"then": "stop"}])
PLAN_FILE = """
name = "housing"
photograph = { width = 40, height = 24 }
[zones.surface]
rectangle = { corner = [0, 0], width = 40, height = 24 }
rules = [{ then = "accept" }]
"""
LIMITS = plan_of(rules=[{"longer_than": "0.1 mm", "then": "reject"}])


def store(client, plan, reason="first"):
    body = {"plan": plan, "reason": reason}
    return client.post(f"/v1/models/{NAME}/plans", headers=ADMIN, json=body)


def activate(client, version, station="", reason="tested"):
    return ask(client, "plan", {"version": version, "station": station, "reason": reason})


def use(client, plan, station=""):
    """Stores and activates a plan; returns its version."""
    stored = store(client, plan)
    assert stored.status_code == 200, stored.text
    changed = activate(client, stored.json()["version"], station)
    assert changed.status_code == 200, changed.text
    return stored.json()["version"]


def predict(client, body, query=""):
    answer = client.post(f"/v1/predict{query}", content=body, headers=PNG)
    assert answer.status_code == 200, answer.text
    return answer.json()


def inspect(client, body, query="", **headers):
    answer = client.post(f"/v1/inspect{query}", content=body, headers=PNG | headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def recorded(start, tmp_path):
    with start(record="required", record_folder=tmp_path / "record", record_zone="UTC") as client:
        yield client


def rows_of(client):
    """The rows of the inspections, in their order."""

    async def read():
        statement = select(inspections).order_by(inspections.c.id)
        reading = client.app.state.service.recording.record.read
        return await reading(lambda connection: connection.execute(statement).mappings().all())

    return client.run(read)


# === Storing ===


def test_versions_are_stored_listed_and_never_change(client, shelf):
    none = client.get(f"/v1/models/{NAME}/plans", headers=ADMIN).json()
    assert none == {"plans": [], "next_before": None, "can_store": True}
    first = store(client, ACCEPTS, "new drawing").json()
    assert (first["version"], first["name"], first["reason"]) == (1, "housing", "new drawing")
    assert (first["author"], first["stations"]) == ("admin", [])
    assert store(client, ACCEPTS, "new drawing").json() == first  # a repeated request
    second = store(client, STOPS, "stricter").json()
    assert second["version"] == 2
    listed = client.get(f"/v1/models/{NAME}/plans", headers=ADMIN).json()["plans"]
    assert listed == [second, first]
    older = client.get(f"/v1/models/{NAME}/plans?before=2", headers=ADMIN).json()["plans"]
    assert older == [first]
    one = client.get(f"/v1/models/{NAME}/plans/1", headers=ADMIN).json()
    assert one["plan"]["zones"]["surface"]["rules"] == [{"then": "accept"}]
    assert "surface: any defect: accept" in one["sentences"]
    assert predict(client, encode_png(part_image()))["plan"] is None  # stored is not active
    assert sorted(path.name for path in (shelf.folder / NAME / "plans").iterdir()) == ["1.json", "2.json"]


def test_another_plan_that_is_stored_at_the_same_time_is_not_replaced(client, shelf, monkeypatch):
    monkeypatch.setattr(stored_plans.PlanFolder, "numbers", lambda _: [])
    assert store(client, ACCEPTS).status_code == 200
    before = (shelf.folder / NAME / "plans/1.json").read_bytes()
    answer = store(client, STOPS)
    assert (answer.status_code, answer.json()["code"]) == (409, "plans_changed")
    assert (shelf.folder / NAME / "plans/1.json").read_bytes() == before


def test_plans_that_do_not_fit_are_refused(client, shelf):
    wide = ACCEPTS | {"photograph": {"width": 20_000, "height": 20_000}}
    for plan, status, code, text in (
        (plan_of(rules=[{"defect": "dent", "then": "accept"}]), 422, "plan_does_not_fit", "'dent'"),
        (plan_of(rules=[{"defect": "spot", "then": "accept"}]), 422, "plan_does_not_fit", "mask for each"),
        (wide, 422, "plan_does_not_fit", "20000 × 20000"),
        (plan_of(ignored=True, rules=[{"then": "stop"}]), 400, "bad_json", "ignored"),
        (ACCEPTS | {"photograph": PHOTOGRAPH | {"width": 30}}, 400, "bad_json", "inside the photograph"),
        (ACCEPTS | {"zone": {}}, 400, "bad_json", "zone"),
    ):
        answer = store(client, plan)
        assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
        assert text in answer.json()["detail"]
    assert not (shelf.folder / NAME / "plans").exists()


def test_a_photograph_without_a_usable_scale_is_refused(client):
    matrices = [[0] * 9, [1, 0, 0, 0, 1, 0, 0.9, 0, 1], [4e-161, 0, 0, 0, 4e-161, 0, 0, 0, 1]]
    for matrix in [*matrices, [1e6, 0, 0, 0, 1e6, 0, 0, 0, 1.36e-149]]:
        photograph = {"width": 40, "height": 24, "perspective": {"matrix": matrix}}
        answer = store(client, ACCEPTS | {"photograph": photograph})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad_json"), matrix
    near = {"width": 40, "height": 24, "known_distance": {"points": [[0, 0], [40, 0]], "mm": 1e6}}
    assert "scale" in store(client, ACCEPTS | {"photograph": near}).json()["detail"]


def test_names_that_occur_twice_are_refused(client):
    body = json.dumps({"plan": STOPS, "reason": "x"}).replace('"surface":', '"surface": {}, "surface":')
    headers = ADMIN | {"Content-Type": "application/json"}
    body = body.replace("{}", json.dumps(ACCEPTS["zones"]["surface"]))
    answer = client.post(f"/v1/models/{NAME}/plans", headers=headers, content=body)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad_json")
    assert "'surface' twice" in answer.json()["detail"]


def test_a_reason_is_needed(client):
    assert store(client, ACCEPTS, " ").status_code == 400
    store(client, ACCEPTS)
    assert activate(client, 1, reason="").status_code == 400


def test_a_damaged_version_does_not_block_the_next_one(client, shelf):
    store(client, ACCEPTS)
    folder = shelf.folder / NAME / "plans"
    (folder / "2.json").write_text("{")
    (folder / "1001.json").write_text("{")
    assert store(client, STOPS).json()["version"] == 3
    answer = client.get(f"/v1/models/{NAME}/plans/2", headers=ADMIN)
    assert (answer.status_code, answer.json()["code"]) == (409, "damaged_plans")


def test_a_folder_that_is_a_file_is_named(client, shelf):
    (shelf.folder / NAME / "plans").write_text("")
    answer = store(client, ACCEPTS)
    assert (answer.status_code, answer.json()["code"]) == (409, "plans_fixed")


def test_a_plan_may_have_a_hundred_zones_with_many_corners(client):
    corners = [[x / 10, 0] for x in range(250)] + [[x / 10, 20] for x in range(250, 0, -1)]
    zones = {f"zone {number}": {"polygon": corners, **ANY_IS_ACCEPTED} for number in range(100)}
    assert store(client, ACCEPTS | {"zones": zones}).status_code == 200
    assert store(client, ACCEPTS | {"name": "x" * (4 * 2**20)}).status_code == 413


def test_only_engineers_store_and_activate(start, key_files):
    with start(api_keys=key_files["api_keys"]) as client:
        ordinary = {"X-API-Key": "api"}
        for path, body in (
            (f"/v1/models/{NAME}/plans", {"plan": ACCEPTS, "reason": ""}),
            (f"/v1/admin/models/{NAME}/plan", {"version": 1, "station": "", "reason": ""}),
        ):
            assert client.post(path, headers=ordinary, json=body).status_code == 403


def test_models_without_a_folder_have_no_plans(make_app, serve, key_files):
    with serve(make_app(admin_keys=key_files["admin_keys"])) as client:
        answer = client.post("/v1/models/unnamed/plans", headers=ADMIN, json={"plan": ACCEPTS, "reason": "x"})
        assert (answer.status_code, answer.json()["code"]) == (404, "model_not_found")


# === Deciding ===


def test_an_active_plan_decides_at_once(client, part):
    before = predict(client, part)
    assert (before["decision"]["label"], before["decision"]["model_label"]) == ("scratch", None)
    use(client, ACCEPTS)
    answer = predict(client, part)
    assert (answer["decision"]["label"], answer["decision"]["model_label"]) == ("good", "scratch")
    plan = answer["plan"]
    assert (plan["name"], plan["version"], plan["severity"]) == ("housing", 1, "accept")
    assert (plan["findings"], plan["finding_count"], plan["defect_count"]) == ([], 0, 1)
    (defect,) = plan["defects"]
    assert (defect["bbox"], defect["zones"]) == ([10, 8, 6, 4], ["surface"])
    assert defect["length"]["unit"] == "mm" and defect["area"]["value"] == pytest.approx(0.24)
    use(client, STOPS)
    answer = predict(client, part)
    assert answer["decision"]["label"] == "scratch"
    assert (answer["plan"]["version"], answer["plan"]["severity"]) == (2, "stop")
    assert answer["plan"]["sentence"] == "surface: defect: reject and stop the line"
    (listed,) = client.get("/v1/models").json()["models"][0]["plans"]
    assert (listed["station"], listed["version"]) == ("", 2)
    activate(client, None)
    assert predict(client, part)["decision"] == before["decision"]


def test_the_log_names_the_active_plan(client, caplog):
    caplog.set_level("INFO", "api")
    use(client, STOPS, "press 2")
    (entry,) = [each for each in caplog.records if each.msg == "activate a plan"]
    assert (entry.result, entry.after) == ("plans changed", "1 (stable, plan 1 at 'press 2')")


def test_small_sizes_keep_their_digits(client, part):
    fine = {"photograph": PHOTOGRAPH | {"mm_per_px": 0.0005}}
    use(client, plan_of(rules=[{"larger_than": "0.000005 mm²", "then": "reject"}]) | fine)
    (finding,) = predict(client, part)["plan"]["findings"]
    assert finding["measured"]["value"] == pytest.approx(6e-6)


def test_sizes_without_a_known_error_have_no_upper_limit(client, part):
    use(client, LIMITS)
    answer = predict(client, part)
    assert (answer["decision"]["label"], answer["plan"]["severity"]) == ("review", "review")
    (finding,) = answer["plan"]["findings"]
    assert (finding["zone"], finding["rule"], finding["condition"]) == ("surface", 0, "longer_than")
    assert (finding["limit"], finding["measured"]["high"], finding["certain"]) == (0.1, None, False)
    assert finding["sentence"].startswith("surface: length of defect 0.")


def test_each_station_has_its_plan(client, part):
    use(client, STOPS)
    use(client, ACCEPTS, "press 2")
    labels = [predict(client, part, query)["decision"]["label"] for query in ("", "?station=press+2")]
    assert labels == ["scratch", "good"]
    assert predict(client, part, "?station=press+1")["plan"]["severity"] == "stop"
    batch = client.post("/v1/predict/batch?station=press+2", files=[("file", ("a.png", part, "image/png"))])
    assert batch.json()["items"][0]["answer"]["plan"]["severity"] == "accept"
    activate(client, None, "press 2")
    assert predict(client, part, "?station=press+2")["plan"]["severity"] == "stop"


def test_a_mask_as_file_has_the_plan_in_its_headers(client, part):
    use(client, STOPS)
    answer = client.post("/v1/predict", content=part, headers=PNG | {"Accept": "image/png"})
    found = {name: answer.headers[f"x-segdec-{name}"] for name in ("plan", "plan-version", "severity")}
    assert found == {"plan": "housing", "plan-version": "1", "severity": "stop"}
    assert answer.headers["x-segdec-model-label"] == "scratch"


def test_a_threshold_beside_a_plan_is_refused(client, shelf, part):
    use(client, ACCEPTS, "press 2")
    shapes = list(shelf.predictors["1"].shapes)
    assert predict(client, part, "?threshold=0.9")["decision"]["label"] == "good"  # no plan there
    for path in ("predict", "inspect"):
        answer = client.post(f"/v1/{path}?threshold=0.9&station=press+2", content=part, headers=PNG)
        assert (answer.status_code, answer.json()["code"]) == (400, "threshold_with_plan")
    form = {"files": {"file": ("a.png", part, "image/png")}, "data": {"station": "press 2"}}
    assert client.post("/v1/inspect?threshold=0.9", **form).json()["code"] == "threshold_with_plan"
    assert len(shelf.predictors["1"].shapes) == len(shapes) + 1  # the network ran only without a plan


def test_photographs_of_another_size_are_not_inspected(recorded, shelf):
    use(recorded, ACCEPTS)
    before = len(shelf.predictors["1"].shapes)
    other = encode_png(part_image(24, 48))
    for path in ("predict", "inspect"):
        answer = recorded.post(f"/v1/{path}?station=a", content=other, headers=PNG)
        assert (answer.status_code, answer.json()["code"]) == (422, "plan_size")
        assert "48 × 24 px" in answer.json()["detail"]
    assert len(shelf.predictors["1"].shapes) == before
    assert rows_of(recorded) == []


def test_the_open_inference_protocol_has_the_verdict_of_the_plan(client, part):
    use(client, ACCEPTS)
    image = {"name": "image", "shape": [1], "datatype": "BYTES", "data": [b64encode(part).decode()]}
    body = {"inputs": [image], "outputs": [{"name": "label"}]}
    answer = client.post(f"/v2/models/{NAME}/infer", json=body).json()
    assert answer["outputs"][0]["data"] == ["good"]
    body["parameters"] = {"threshold": 0.9}
    assert client.post(f"/v2/models/{NAME}/infer", json=body).json()["code"] == "threshold_with_plan"


def test_new_thresholds_and_reloads_keep_the_plan(client, part):
    def judge():
        return client.app.state.service.inspection.models.find(NAME).plan_at("").judge

    use(client, STOPS)
    before = judge()
    ask(client, "reload")
    assert judge() is before  # it is not prepared again
    ask(client, "thresholds", {"version": "1", "score": 0.6, "review": None})
    ask(client, "reload")
    answer = predict(client, part)
    assert (answer["decision"]["threshold"], answer["plan"]["severity"]) == (0.6, "stop")


# === Versions of the model, and damaged files ===


def test_a_version_that_a_plan_does_not_fit_is_not_served(start, shelf, part):
    shelf.predictors["1"].have_classes(20)
    shelf.put("2")  # has one mask for all classes
    scratches = plan_of(rules=[{"defect": "scratch", "then": "accept"}])
    shelf.set_aliases(stable="1")
    with start() as client:
        use(client, scratches)
        answer = ask(client, "candidate", {"version": "2"})
        assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model")
        assert "Plan 1 ('housing') does not fit" in answer.json()["detail"]
        assert served(client) == {"1": ["stable"]}
        assert predict(client, part)["decision"]["label"] == "good"
        activate(client, None)
        assert ask(client, "candidate", {"version": "2"}).status_code == 200
        answer = activate(client, 1)
        assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model")
        assert predict(client, part)["plan"] is None


def test_nothing_is_inspected_without_an_active_plan_that_is_damaged(client, start, shelf, part):
    use(client, STOPS)
    folder = shelf.folder / NAME
    for path in (folder / "plans/1.json", folder / "active_plans.json"):
        content = path.read_bytes()
        for damaged in (b"{", content.replace(b'"first"', b'"other"').replace(b"1,", b"7,")):
            path.write_bytes(damaged)
            answer = ask(client, "reload")
            assert (answer.status_code, answer.json()["code"]) == (422, "unusable_model"), damaged
            assert predict(client, part)["plan"]["severity"] == "stop"  # as before
            with pytest.raises(ArtifactError), start():
                pass
        path.write_bytes(content)
    (folder / "plans/1.json").unlink()
    assert "is missing" in ask(client, "reload").json()["detail"]
    assert client.get(f"/v1/models/{NAME}/plans/1", headers=ADMIN).json()["code"] == "plan_not_found"


def test_an_unknown_version_is_not_activated(client, shelf):
    answer = activate(client, 7)
    assert (answer.status_code, answer.json()["code"]) == (404, "plan_not_found")
    for version in (0, -1, 1.5, 1001, "first"):
        assert activate(client, version).status_code == 400
    assert not (shelf.folder / NAME / "active_plans.json").exists()


def test_the_number_of_active_plans_is_limited(client, monkeypatch):
    monkeypatch.setattr("api.models.active_plans.MAX_ACTIVE", 2)
    use(client, ACCEPTS)
    use(client, STOPS, "a")
    assert activate(client, 1, "b").status_code == 200
    third = store(client, LIMITS).json()["version"]
    answer = activate(client, third, "c")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_active_plans")


# === Record ===


def test_the_record_has_the_plan_that_decided(recorded, part):
    inspect(recorded, part)
    use(recorded, ACCEPTS)
    answer = inspect(recorded, part, "?part_id=7&station=press")
    InspectAnswer.model_validate(answer)
    plain, row = rows_of(recorded)
    names = ("model_label", "plan", "plan_version", "plan_sha256", "plan_severity", "plan_finding")
    assert {plain[name] for name in names} == {None}
    assert (row["label"], row["model_label"], row["plan"], row["plan_version"]) == (
        *("good", "scratch"),
        *("housing", 1),
    )
    assert (row["plan_severity"], row["plan_sha256"]) == ("accept", answer["plan"]["sha256"])
    assert (row["draw_reason"], row["draw_probability"]) == ("tolerated", 0.02)
    record = recorded.get(f"/v1/records/{answer['record_id']}", headers=ADMIN).json()
    assert record["answer"]["plan"] == answer["plan"]
    assert record["draw"]["reason"] == "tolerated"
    heading = recorded.get("/v1/records/export?format=csv", headers=ADMIN).text.splitlines()[0]
    assert set(names) < set(heading.replace('"', "").split(","))


def test_a_repeat_after_another_plan_is_another_inspection(recorded, part):
    use(recorded, ACCEPTS)
    key = {"Idempotency-Key": "shot 1"}
    first = inspect(recorded, part, "?part_id=7", **key)
    assert inspect(recorded, part, "?part_id=7", **key)["repeated"]
    use(recorded, plan_of("housing 2", **ANY_IS_ACCEPTED))
    again = inspect(recorded, part, "?part_id=7", **key)
    assert (again["repeated"], again["plan"]["version"]) == (False, 2)
    assert again["record_id"] != first["record_id"]
    activate(recorded, 1)
    assert inspect(recorded, part, "?part_id=7", **key)["record_id"] == first["record_id"]


def test_storing_and_activating_are_in_the_audit_log(recorded):
    use(recorded, ACCEPTS)
    activate(recorded, 1)  # changes nothing
    changes = recorded.get("/v1/audit", headers=ADMIN).json()["changes"]
    assert [change["what"] for change in changes] == ["activate a plan", "store a plan"]
    assert {change["who"] for change in changes} == {"admin"}
    active, stored = (change["after"] for change in changes)
    assert (stored["plan"], stored["reason"], len(stored["sha256"])) == (1, "first", 64)
    assert active["plan"] == {"version": 1, "sha256": stored["sha256"]}
    assert (active["station"], active["reason"]) == ("", "tested")


def test_events_name_the_plan(recorded, part):
    use(recorded, STOPS)
    inspect(recorded, part)
    (row,) = rows_of(recorded)
    data = json.loads(inspected_event(row))["data"]
    assert data["plan"] == {
        "name": "housing",
        "version": 1,
        "severity": "stop",
        "finding": "surface: defect: reject and stop the line",
        "model_label": "scratch",
    }


# === Consumers of the verdict ===


def test_a_candidate_is_judged_by_the_same_plan(recorded, shelf, part):
    shelf.put("2")
    ask(recorded, "candidate", {"version": "2"})
    use(recorded, ACCEPTS)
    inspect(recorded, part)
    end = time.monotonic() + 30
    while (report := candidate(recorded))["answered"] == 0:
        assert time.monotonic() < end
        time.sleep(0.005)
    assert (report["answered"], report["differing"]) == (1, 0)


def candidate(client):
    (found,) = client.get("/v1/review/candidates", headers=ADMIN).json()["candidates"]
    return found


def test_reviewed_parts_that_a_plan_tolerates_are_no_training_data(recorded, part, tmp_path):
    use(recorded, ACCEPTS)
    tolerated = inspect(recorded, part)["record_id"]
    use(recorded, STOPS)
    rejected = inspect(recorded, encode_png(part_image(brightness=220)))["record_id"]
    for number in (tolerated, rejected):
        body = {"label": "good", "reviewer": "Ada"}
        path, headers = f"/v1/records/{number}/review", ADMIN | {"If-Match": '"0"'}
        assert recorded.request("PUT", path, json=body, headers=headers).status_code == 200
    record = recorded.app.state.service.recording.record
    export = partial(export_reviewed, record._engine, record.pictures, Filters(), tmp_path / "out")
    summary = recorded.run(lambda: record.run_in_thread(export))
    assert (summary.labels["good"], summary.tolerated) == (1, 1)
    assert "1 good ones with a defect that their inspection plan may allow" in describe_skipped(summary)
    statistics = recorded.get("/v1/review/statistics", headers=ADMIN)
    assert statistics.status_code == 200, statistics.text


def test_a_stop_is_shown_until_the_next_one(recorded, part):
    use(recorded, STOPS)
    stop = inspect(recorded, part, "?station=press")["record_id"]
    reader = LineStateReader(ZoneInfo("UTC"))
    record = recorded.app.state.service.recording.record
    read = partial(record.read, reader.read)
    recorded.run(read)
    inspect(recorded, encode_png(part_image(brightness=50)), "?station=press")
    states = recorded.run(read)
    for station in (None, "press"):
        assert (states[station].stop["id"], states[station].last["label"]) == (stop, "good")


def test_the_command_stores_and_activates(shelf, key_files, tmp_path, capsys, monkeypatch, part):
    settings = {"models": shelf.folder, "admin_keys": key_files["admin_keys"], "batch_sizes": (1,)}
    (tmp_path / "plan.toml").write_text(PLAN_FILE)
    monkeypatch.setenv("SEGDEC_API_KEY", "admin")
    with live_server.served(create_app(Settings(**settings))) as (host, port):
        service = ["--url", f"http://{host}:{port}", "--model-name", NAME, "--reason", "drawing C"]
        assert main(["plan", "send", str(tmp_path / "plan.toml"), *service]) == 0
        assert "is stored as version 1 for parts" in capsys.readouterr().out
        assert main(["plan", "activate", "1", "--station", "press 2", *service]) == 0
        assert (
            capsys.readouterr().out
            == "press 2: plan 'housing', version 1\nall other stations: no plan, parts decides\n"
        )
        assert main(["plan", "activate", "none", "--station", "press 2", *service]) == 0
        assert capsys.readouterr().out == "all stations: no plan, parts decides\n"
        with pytest.raises(SystemExit):
            main(["plan", "activate", "9", *service])
        assert "There is no plan 9" in capsys.readouterr().err
        assert main(["plan", "activate", "1", *service]) == 0
        capsys.readouterr()
        (tmp_path / "part.png").write_bytes(part)
        assert main(["predict", str(tmp_path / "part.png"), *service[:2]]) == 0
        printed = capsys.readouterr()
        heading, row = printed.out.splitlines()
        assert heading.split()[-1] == "reason"
        assert row.endswith("all defects are within the limits: accept")
        assert "The plan changed 1 of 1 verdicts: 1 from scratch to good." in printed.err


# === Simulation ===


def simulate(client, plan, query=""):
    sent = {"version" if isinstance(plan, int) else "plan": plan}
    answer = client.post(f"/v1/models/{NAME}/plans/simulation{query}", headers=ADMIN, json=sent)
    assert answer.status_code == 200, answer.text
    found = answer.json()
    found["changed"] = [part for part in found["parts"] if part["label"] != part["new_label"]]
    return found


def test_a_simulation_judges_recorded_parts_without_effect(recorded, shelf, part):
    first = inspect(recorded, part, "?part_id=7&station=a")["record_id"]
    inspect(recorded, encode_png(part_image(brightness=50)), "?station=a")
    inspect(recorded, part, "?station=b")
    review = {"label": "scratch", "reviewer": "Ada", "session": "desk"}
    missed = recorded.request("PUT", "/v1/records/2/review", headers=ADMIN | {"If-Match": '"0"'}, json=review)
    assert missed.status_code == 200, missed.text
    accepts, stops = (store(recorded, plan).json()["version"] for plan in (ACCEPTS, STOPS))
    runs = len(shelf.predictors["1"].shapes)
    found = simulate(recorded, accepts)
    assert len(shelf.predictors["1"].shapes) == runs + 2  # a good part needs no inspection
    assert (found["judged"], found["good"], found["deleted"], found["not_inspected"]) == (3, 1, 0, 0)
    assert found["good_reviewed"] == {"scratch": 1}
    assert [(one["label"], one["new_label"]) for one in found["changed"]] == [("scratch", "good")] * 2
    assert found["model_version"] == found["parts"][0]["version"] == "1"
    assert simulate(recorded, accepts)["changed"] == simulate(recorded, ACCEPTS)["changed"]
    unchanged = simulate(recorded, stops)
    assert unchanged["changed"] == []
    assert [(one["label"], one["verdict"]["severity"]) for one in unchanged["parts"]] == [
        ("scratch", "stop")
    ] * 2
    assert unchanged["parts"][0]["verdict"]["defects"][0]["length"]["unit"] == "mm"
    only = simulate(recorded, accepts, "?station=a")
    assert (only["judged"], only["changed"][0]["record_id"], only["changed"][0]["part_id"]) == (2, first, "7")
    assert found["next_before"] is None
    newest = simulate(recorded, accepts, "?limit=1")
    assert (newest["judged"], newest["changed"][0]["station"], newest["next_before"]) == (1, "b", 3)
    assert simulate(recorded, accepts, "?before=3")["judged"] == 2
    assert len(rows_of(recorded)) == 3
    assert predict(recorded, part)["plan"] is None


def test_a_simulation_ends_after_some_photographs_and_names_what_it_cannot_judge(recorded, monkeypatch):
    monkeypatch.setattr("api.plans.simulation.MAX_INSPECTED", 2)
    for width in (40, 48, 40):
        inspect(recorded, encode_png(part_image(24, width)))
    plan = store(recorded, ACCEPTS).json()["version"]
    page = simulate(recorded, plan)
    assert [one["new_label"] for one in page["changed"]] == ["good", "not_inspected"]
    assert page["changed"][1]["verdict"] is None
    assert "48 × 24 px" in page["changed"][1]["problem"]
    assert (page["judged"], page["next_before"]) == (2, 2)
    rest = simulate(recorded, plan, f"?before={page['next_before']}")
    assert (rest["judged"], len(rest["changed"]), rest["next_before"]) == (1, 1, None)


def test_a_simulation_after_a_plan_compares_with_the_given_verdict(recorded, part):
    use(recorded, ACCEPTS)
    inspect(recorded, part)
    assert simulate(recorded, 1)["changed"] == []
    stops = store(recorded, STOPS).json()["version"]
    (changed,) = simulate(recorded, stops)["changed"]
    assert (changed["label"], changed["new_label"]) == ("good", "scratch")
    assert changed["verdict"]["sentence"] == "surface: defect: reject and stop the line"


def test_parts_that_other_thresholds_called_good_are_inspected_again(recorded, part):
    inspect(recorded, part, "?threshold=0.99")
    plan = store(recorded, STOPS).json()["version"]
    (changed,) = simulate(recorded, plan)["changed"]
    assert (changed["label"], changed["new_label"]) == ("good", "scratch")


def test_parts_whose_photograph_was_deleted_are_counted(recorded, part):
    number = inspect(recorded, part)["record_id"]
    answer = recorded.request("DELETE", f"/v1/admin/records/{number}/picture", headers=ADMIN)
    assert answer.status_code < 300, answer.text
    plan = store(recorded, ACCEPTS).json()["version"]
    assert simulate(recorded, plan)["deleted"] == 1


def test_a_plan_that_cannot_be_simulated_is_an_error(recorded):
    def simulated(**sent):
        answer = recorded.post(f"/v1/models/{NAME}/plans/simulation", headers=ADMIN, json=sent)
        return answer.status_code, answer.json()["code"]

    assert simulated(version=7) == (404, "plan_not_found")
    assert simulated(version=True) == (400, "bad_json")
    assert simulated(plan=ACCEPTS, version=7) == (400, "bad_json")
    assert simulated() == (400, "bad_json")
    assert simulated(plan=ACCEPTS | {"zones": {}}) == (400, "bad_json")
    other = {"surface": {**ACCEPTS["zones"]["surface"], "rules": [{"defect": "dent", "then": "accept"}]}}
    assert simulated(plan=ACCEPTS | {"zones": other}) == (422, "plan_does_not_fit")


def test_the_command_prints_a_simulation(shelf, key_files, tmp_path, capsys, monkeypatch, part):
    settings = {"models": shelf.folder, "admin_keys": key_files["admin_keys"], "batch_sizes": (1,)}
    settings |= {"record": "required", "record_folder": tmp_path / "record"}
    (tmp_path / "plan.toml").write_text(PLAN_FILE)
    monkeypatch.setenv("SEGDEC_API_KEY", "admin")
    with live_server.served(create_app(Settings(**settings))) as (host, port):
        service = ["--url", f"http://{host}:{port}", "--model-name", NAME]
        with Client(f"http://{host}:{port}", api_key="admin") as client:
            client.inspect(part, part_id="7")
        main(["plan", "send", str(tmp_path / "plan.toml"), *service, "--reason", "drawing C"])
        capsys.readouterr()
        assert main(["plan", "simulate", "1", *service]) == 0
        assert main(["plan", "simulate", str(tmp_path / "plan.toml"), *service]) == 0
    lines = [
        "record 1, part 7: scratch → good: all defects are within the limits: accept",
        "Version 1 changes 1 of the last 1 verdicts.",
        "scratch → good: 1",
    ]
    of_file = f"Plan {tmp_path / 'plan.toml'} changes 1 of the last 1 verdicts."
    assert capsys.readouterr().out.splitlines() == [*lines, lines[0], of_file, lines[2]]
