"""Reports by schedule: when they are due, once for all replicas, to a folder and by e-mail."""

from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from aiosmtpd.controller import Controller
from aiosmtpd.handlers import Message
from aiosmtpd.smtp import AuthResult, LoginPassword
from sqlalchemy import select

from api.messages.language import find_language
from api.record.record import Record
from api.record.shifts import ShiftPlan
from api.reports.report_mail import MailServer
from api.reports.scheduled_reports import ReportSchedule, ScheduledReports
from api.reports.tables import scheduled_reports
from api.settings import Settings, read_settings
from segdec.errors import ConfigError, RunError
from tests.api.record.databases import free_port
from tests.api.record.filled_record import make_row, stock

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)  # the early shift, 05:00 to 13:00 UTC
SETTINGS = Settings(record_zone="Europe/Berlin")
PLAN = ShiftPlan.from_settings(SETTINGS)
AFTER = datetime(2026, 3, 2, 13, 2, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


ONE_DATABASE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


@pytest.fixture(autouse=True)
def short_pdf(monkeypatch):
    """`test_reports` has whole files, which need half a second for their fonts."""
    monkeypatch.setattr("api.reports.scheduled_reports.write_pdf", lambda _content, _now: b"%PDF-")


@pytest.fixture
def filled(engine):
    stock(engine, [make_row(number, inspected_at=NOON) for number in (1, 2, 3)])
    return engine


def make_reports(folder=None, mail=None, language="en"):
    schedule = ReportSchedule(("shift", "day", "week"), folder, mail, find_language(language))
    return ScheduledReports(None, schedule, lambda: PLAN)


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def test_a_report_is_made_once_after_its_period(filled, tmp_path):
    folder = tmp_path / "reports"
    reports = make_reports(folder)
    reports.make_due(filled, "shift", AFTER - MINUTE)  # the shift before had no inspections
    assert names(folder) == []
    assert reports.make_due(filled, "shift", AFTER)
    assert names(folder) == ["segdec-shift-2026-03-02-0600.pdf", "segdec-shift-2026-03-02-0600.xlsx"]
    assert not make_reports(folder).make_due(filled, "shift", AFTER + MINUTE)  # another replica
    reports.make_due(filled, "day", NOON)
    reports.make_due(filled, "week", NOON)
    assert len(names(folder)) == 2
    reports.make_due(filled, "day", NOON + timedelta(days=1))
    reports.make_due(filled, "week", NOON + timedelta(days=7))
    assert names(folder)[::2] == [
        "segdec-day-2026-03-02.pdf",
        "segdec-shift-2026-03-02-0600.pdf",
        "segdec-week-2026-W10.pdf",
    ]


def test_a_report_that_fails_is_made_later(filled, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    with pytest.raises(OSError):
        make_reports(blocked / "reports").make_due(filled, "shift", AFTER)
    reports = make_reports(tmp_path / "reports")
    assert not reports.make_due(filled, "shift", AFTER + 14 * MINUTE)  # claimed by the other replica
    assert reports.make_due(filled, "shift", AFTER + 16 * MINUTE)
    assert len(names(tmp_path / "reports")) == 2


def test_a_report_from_before_the_clock_was_set_back_is_made_again(filled, tmp_path):
    """It was made before its period had ended."""
    reports = make_reports(tmp_path / "reports")
    assert reports.make_due(filled, "shift", AFTER + timedelta(hours=1))
    assert not reports.make_due(filled, "shift", AFTER + timedelta(minutes=50))  # as other replicas' clocks
    assert reports.make_due(filled, "shift", AFTER)
    assert not reports.make_due(filled, "shift", AFTER + MINUTE)


def test_old_reports_are_forgotten(filled, tmp_path):
    reports = make_reports(tmp_path / "reports")
    reports.make_due(filled, "shift", AFTER)
    reports.make_due(filled, "shift", AFTER + timedelta(days=401))
    with filled.connect() as connection:
        assert len(connection.execute(select(scheduled_reports)).all()) == 1


# === E-mail ===


class Inbox(Message):
    """Keeps the messages that arrive."""

    def __init__(self) -> None:
        super().__init__()
        self.messages = []

    def handle_message(self, message) -> None:
        self.messages.append(message)


@pytest.fixture
def mail_server():
    """A server with the login user:secret, and its messages."""

    def authenticate(*facts):
        return AuthResult(success=facts[-1] == LoginPassword(b"user", b"secret"), handled=False)

    words = {"authenticator": authenticate, "auth_require_tls": False}
    controller = Controller(Inbox(), hostname="127.0.0.1", port=free_port(), **words)
    controller.start()
    yield controller
    controller.stop()


def server_of(controller, login=""):
    given = {"report_from": "segdec@plant.test", "report_to": "anna@plant.test, bob@plant.test"}
    settings = Settings.model_validate({"report_smtp": f"smtp://{login}127.0.0.1:{controller.port}", **given})
    return MailServer.from_settings(settings)


@ONE_DATABASE
@pytest.mark.parametrize("login", ["", "user:secret@"])
def test_a_report_is_sent(filled, mail_server, login):
    make_reports(mail=server_of(mail_server, login), language="de").make_due(filled, "shift", AFTER)
    [message] = mail_server.handler.messages
    assert message["To"] == "anna@plant.test, bob@plant.test"
    body, *files = message.get_payload()
    assert "3" in body.get_payload(decode=True).decode()
    assert [file.get_filename() for file in files] == [
        "segdec-shift-2026-03-02-0600.pdf",
        "segdec-shift-2026-03-02-0600.xlsx",
    ]
    assert files[0].get_payload(decode=True).startswith(b"%PDF-")


@ONE_DATABASE
def test_a_wrong_login_is_an_error(filled, mail_server):
    with pytest.raises(OSError, match="Authentication"):
        make_reports(mail=server_of(mail_server, "user:wrong@")).make_due(filled, "shift", AFTER)
    assert mail_server.handler.messages == []


def test_a_password_is_not_sent_without_encryption(mail_server, monkeypatch):
    monkeypatch.setattr("api.reports.report_mail.is_loopback", lambda _host: False)
    server = server_of(mail_server, "user:secret@")
    with pytest.raises(RunError, match="offers no encryption"):
        server.send(None)


def test_the_service_makes_reports_and_logs_failures(make_app, serve, tmp_path, caplog, monkeypatch):
    settings = {"record_folder": tmp_path / "record", "report_folder": tmp_path / "reports"}
    settings |= {"report_schedule": "shift,day", "report_language": "de"}
    with serve(make_app(record="required", **settings)) as client:
        record: Record = client.app.state.service.recording.record
        reports = client.app.state.service.features.reports

        def made(engine):
            with engine.connect() as connection:
                return connection.execute(select(scheduled_reports.c.kind)).scalars().all()

        client.run(reports.make_all_due)
        assert set(client.run(lambda: record.read_all(made))) == {"shift", "day"}
        monkeypatch.setattr(reports, "make_due", Mock(side_effect=RunError("no encryption")))
        client.run(reports.make_all_due)
    assert "The report of the last shift is tried again later: no encryption" in caplog.text


# === Settings ===


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--report-schedule", "shift"], "needs --report-folder or --report-smtp"),
        (["--report-schedule", "month"], "report.schedule"),
        (["--report-smtp", "smtp://mail"], "needs --report-from and --report-to"),
        (["--report-to", "anna"], "report.to"),
        (["--record", "off", "--report-schedule", "shift", "--report-folder", "a"], "needs a record"),
    ],
)
def test_unusable_settings_are_refused(flags, words):
    with pytest.raises(ConfigError, match=words):
        read_settings(["--model", "m", "--record", "required", *flags])


@pytest.mark.parametrize("url", ["mail", "http://mail", "smtp://", "smtp://mail:x", "smtp://mail/path"])
def test_other_addresses_of_mail_servers_are_refused(url):
    with pytest.raises(ConfigError, match="Expected smtp://HOST:PORT"):
        MailServer.from_settings(Settings.model_validate({"report_smtp": url}))
