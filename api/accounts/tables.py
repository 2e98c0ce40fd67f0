"""Tables of users, their sessions and log-ins."""

from sqlalchemy import Boolean, Column, ForeignKey, Index, Integer, LargeBinary, Table, Text

from api.database.schema import UtcDateTime, metadata

users = Table(
    "users",
    metadata,
    Column("name", Text, primary_key=True, doc="in lower case"),
    Column("role", Text, nullable=False),
    Column("is_screen", Boolean, nullable=False, doc="a screen logs in with a link and stays logged in"),
    Column("password", Text, doc="hash by Argon2id; null: logs in by a link or by OpenID Connect"),
    Column("subject", Text, unique=True, doc="issuer and subject of OpenID Connect"),
    Column("created_at", UtcDateTime, nullable=False),
)
"""People and screens that may log in to the pages."""

sessions = Table(
    "sessions",
    metadata,
    Column("token", LargeBinary(32), primary_key=True, doc="SHA-256 of the cookie"),
    Column("user", Text, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("csrf_token", Text, nullable=False),
    Column("logged_in_at", UtcDateTime, nullable=False),
    Column("token_at", UtcDateTime, nullable=False, doc="when this token was made"),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("is_replaced", Boolean, nullable=False, default=False, doc="by a newer token"),
    Index("sessions_by_user", "user"),
    Index("sessions_by_expiry", "expires_at"),
)

log_in_links = Table(
    "log_in_links",
    metadata,
    Column("token", LargeBinary(32), primary_key=True, doc="SHA-256 of the token in the link"),
    Column("user", Text, ForeignKey("users.name", ondelete="CASCADE"), nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
)
"""Links with which a screen logs in, once."""

failed_log_ins = Table(
    "failed_log_ins",
    metadata,
    Column("name", Text, primary_key=True, doc="as typed, known or not"),
    Column("count", Integer, nullable=False, doc="since the last success"),
    Column("last_at", UtcDateTime, nullable=False),
    Index("failed_log_ins_by_time", "last_at"),
)
