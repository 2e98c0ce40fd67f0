"""An entry of the audit log."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AuditEntry:
    """A change: who (an API key's name or part of the service) did what, and the states before and after."""

    who: str
    what: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
