"""Settings that are changed while the service runs: their checks, their effects, several replicas."""

import re
from typing import get_args
from unittest.mock import Mock

import pytest

from api.errors import RequestError
from api.page_routes import STATIC
from api.record import current_settings
from api.record.current_settings import CHANGEABLE_SETTINGS, dump_setting, parse_setting
from api.record.settings import RecordMode
from api.record.settings_routes import SHOWN_SETTINGS
from api.record.storage.retention_class import RetentionClass
from api.record.tables import changed_settings
from api.settings import Settings
from segdec.artifact.differences import UnlikeAction
from tests.api.conftest import PNG

ANNA = {"X-API-Key": "admin"}


@pytest.fixture
def make_service(make_app, tmp_path, key_files, serve):
    """Starts a replica with the record of the others."""
    folder = tmp_path / "record"
    keys = {name: key_files[name] for name in ("review_keys", "admin_keys")}
    return lambda **settings: serve(make_app(record="required", record_folder=folder, **keys, **settings))


def change(client, name, value):
    return client.request("PUT", f"/v1/settings/{name}", json={"value": value}, headers=ANNA)


def values(answer):
    return {setting["name"]: setting["value"] for setting in answer.json()["settings"]}


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("record_good_share", 1.5, "less than or equal to 1"),
        ("record_good_share", None, "valid number"),
        ("record_good_share", "x" * 500, "Expected a number"),
        ("record_good_share", True, "Expected a number"),
        ("record_good_share", "0.5", "Expected a number"),
        ("record_good_days", 0, "at least 1"),
        ("record_good_days", 1e-320, "at least 1"),
        ("record_good_days", float("inf"), "less than or equal to 36500"),
        ("record_zone", "Nowhere", "time zone such as Europe/Berlin"),
        ("record_zone", "../../etc/passwd", "time zone such as Europe/Berlin"),
        ("record_shifts", "25:00", "times of the day"),
        ("record_shifts", "", "times of the day"),
        ("record_shifts", None, "tuple"),
        ("record_budget_gb", -1, "at least 1"),
        ("record_budget_gb", 1e308, "less than or equal to 1000000000"),
        ("record_budget_gb", 10**400, "record_budget_gb"),
    ],
)
def test_unusable_values_are_refused(name, value, reason):
    with pytest.raises(RequestError, match=reason) as caught:
        parse_setting(name, value)
    assert (caught.value.status, caught.value.code) == (422, "bad_setting")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("name", ["host", "admin_keys", "x" * 500, ""])
def test_other_settings_are_not_changed(name):
    with pytest.raises(RequestError, match="Expected one of: record_shifts"):
        parse_setting(name, 1)


def test_values_are_stored_as_json_and_parsed_again():
    settings = Settings.model_validate({"record_shifts": "22:00,06:00", "record_zone": "Europe/Berlin"})
    assert dump_setting("record_shifts", settings.record_shifts) == "06:00,22:00"
    for name in CHANGEABLE_SETTINGS:
        value = getattr(settings, name)
        assert parse_setting(name, dump_setting(name, value)) == value


def test_a_change_counts_at_once_and_is_in_the_audit_log(make_service, part):
    with make_service(record_good_share=0.0) as client:
        service = client.app.state.service
        assert change(client, "record_zone", "Europe/Berlin").status_code == 200
        assert client.get("/v1/line", headers=ANNA).json()["zone"] == "Europe/Berlin"
        change(client, "record_good_days", 7)
        assert service.recording.record._retention.rules.days[RetentionClass.GOOD] == 7
        change(client, "record_defect_share", 0.25)
        sent = client.post("/v1/inspect", content=part, headers=PNG).json()
        record = client.get(f"/v1/records/{sent['record_id']}", headers=ANNA).json()
        assert record["draw"]["probability"] == 0.25
        change(client, "record_good_days", 7)  # no change
        changes = client.get("/v1/audit", headers=ANNA).json()["changes"]
        assert [(it["who"], it["what"], it["before"], it["after"]) for it in changes][1] == (
            "admin",
            "change a setting",
            {"name": "record_good_days", "value": 30.0},
            {"name": "record_good_days", "value": 7.0},
        )
        assert len(changes) == 3


def test_a_value_is_reset(make_service):
    with make_service(record_zone="Asia/Tokyo") as client:
        change(client, "record_zone", "Europe/Berlin")
        answer = client.request("DELETE", "/v1/settings/record_zone", headers=ANNA)
        assert values(answer)["record_zone"] == "Asia/Tokyo"
        assert client.request("DELETE", "/v1/settings/host", headers=ANNA).status_code == 404
        assert change(client, "record_zone", "Nowhere").json()["code"] == "bad_setting"
        assert change(client, "record_zone", ["UTC"]).json()["code"] == "bad_json"


def test_other_replicas_and_later_starts_use_the_changed_value(make_service, monkeypatch):
    monkeypatch.setattr(current_settings, "REFRESH_S", 0.01)
    with make_service() as first:
        change(first, "record_zone", "Europe/Berlin")
    with make_service(record_zone="Asia/Tokyo") as later:
        settings = later.app.state.service.recording.settings
        later.run(settings.refresh)
        assert values(later.get("/v1/settings", headers=ANNA))["record_zone"] == "Europe/Berlin"
        record = later.app.state.service.recording.record
        later.run(lambda: record.write(lambda connection: connection.execute(changed_settings.delete())))
        later.run(settings.refresh)
        assert settings.current.record_zone == "Asia/Tokyo"


def test_a_stored_value_that_is_not_accepted_is_left_out(make_service, caplog):
    with make_service() as client:
        change(client, "record_zone", "Europe/Berlin")
        record = client.app.state.service.recording.record
        damage = changed_settings.update().values(value='"Nowhere"')
        client.run(lambda: record.write(lambda connection: connection.execute(damage)))
        assert values(client.get("/v1/settings", headers=ANNA))["record_zone"] == "UTC"
        assert "A changed setting is not used: record_zone is 'Nowhere'" in caplog.text


def test_a_change_that_cannot_be_applied_is_tried_again(make_service, monkeypatch):
    with make_service() as client:
        settings = client.app.state.service.recording.settings
        with monkeypatch.context() as broken:
            broken.setattr(settings, "_apply", Mock(side_effect=OverflowError))
            assert change(client, "record_zone", "Europe/Berlin").status_code == 500
        client.run(settings.refresh)
        assert settings.current.record_zone == "Europe/Berlin"


def test_addresses_are_shown_without_passwords(make_service):
    secrets = {"outbox_webhook": "https://u:pw@hook.test/secret?token=1"}
    with make_service(**secrets) as client:
        answer = client.get("/v1/settings", headers=ANNA)
        assert values(answer)["outbox_webhook"] == "https://hook.test"
        assert "pw" not in answer.text and "token" not in answer.text


def test_the_page_has_words_for_the_values_of_settings():
    text = (STATIC / "shared" / "setting_texts.js").read_text("utf-8")
    values = (*get_args(RecordMode), *get_args(UnlikeAction))
    assert [value for value in values if not re.search(rf'\b"?{value}"?: translate\(', text)] == []


def test_the_page_explains_each_setting():
    text = (STATIC / "shared" / "setting_texts.js").read_text("utf-8")
    assert [name for name in (*CHANGEABLE_SETTINGS, *SHOWN_SETTINGS) if f" {name}: {{" not in text] == []
