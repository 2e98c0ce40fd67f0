"""Sends reports by e-mail."""

import smtplib
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from email.utils import localtime, make_msgid
from urllib.parse import unquote, urlsplit

from api.addresses import is_loopback
from api.reports.report_content import ReportContent
from api.reports.report_request import MEDIA_TYPES
from api.reports.report_text import summary_rows
from api.reports.settings import ReportSettings
from segdec.errors import ConfigError, RunError

TIMEOUT_S = 30.0
PORTS = {"smtp": 25, "smtps": 465}
EXPECTED = "Expected smtp://HOST:PORT or smtps://HOST:PORT, with USER:PASSWORD@ before the host if needed."


@dataclass(frozen=True)
class MailServer:
    """The server that sends reports, and the addresses of sender and receivers.

    `smtp` changes to TLS if the server offers it, which a log-in requires; `smtps` begins with TLS.
    """

    host: str
    port: int
    is_tls: bool
    user: str | None
    password: str | None
    sender: str
    receivers: Sequence[str]

    @classmethod
    def from_settings(cls, settings: ReportSettings) -> "MailServer | None":
        """Reads the server from the settings; None if reports are not sent.

        Raises:
            ConfigError: If the address has another form.
        """
        if settings.report_smtp is None:
            return None
        try:
            parts = urlsplit(settings.report_smtp)
            host, port = parts.hostname, parts.port or PORTS[parts.scheme]
        except (KeyError, ValueError) as error:
            raise ConfigError(f"--report-smtp is not the address of a mail server. {EXPECTED}") from error
        if not host or parts.path.strip("/") or parts.query or parts.fragment or parts.scheme not in PORTS:
            raise ConfigError(f"--report-smtp is not the address of a mail server. {EXPECTED}")
        user, password = (None if it is None else unquote(it) for it in (parts.username, parts.password))
        sender, receivers = settings.report_from, settings.report_to
        return cls(host, port, parts.scheme == "smtps", user, password, sender, receivers)

    def send(self, message: EmailMessage) -> None:
        """Sends a message.

        Raises:
            OSError: If the server cannot be reached or refuses the message; `SMTPException` is one.
            RunError: If the password would be sent without encryption.
        """
        context = ssl.create_default_context()
        if self.is_tls:
            server: smtplib.SMTP = smtplib.SMTP_SSL(self.host, self.port, timeout=TIMEOUT_S, context=context)
        else:
            server = smtplib.SMTP(self.host, self.port, timeout=TIMEOUT_S)
        with server:
            server.ehlo()
            if not self.is_tls and server.has_extn("starttls"):
                server.starttls(context=context)
                server.ehlo()
            elif not self.is_tls and self.user is not None and not is_loopback(self.host):
                raise RunError(
                    f"The mail server {self.host} offers no encryption, so that the password is not sent. "
                    "Use smtps://, or a server without a log-in."
                )
            if self.user is not None:
                server.login(self.user, self.password or "")
            server.send_message(message)

    def make_message(self, content: ReportContent, files: Mapping[str, bytes]) -> EmailMessage:
        """Returns a message with the summary of a report and its files, by their names."""
        message = EmailMessage()
        message["From"], message["To"] = self.sender, ", ".join(self.receivers)
        message["Subject"], message["Date"] = content.request.title, localtime()
        message["Message-ID"] = make_msgid(domain=self.sender.rpartition("@")[2])
        message.set_content("\n".join(f"{name}: {value}" for name, value in summary_rows(content)))
        for name, file in files.items():
            main, _, kind = MEDIA_TYPES[name.rpartition(".")[2]].partition("/")
            message.add_attachment(file, maintype=main, subtype=kind, filename=name)
        return message
