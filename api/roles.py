"""Roles of users, and the roles of API keys that correspond to them."""

from typing import Literal, get_args

UserRole = Literal["operator", "reviewer", "quality", "engineer", "administrator"]
Role = Literal["anyone", "predict", "operator", "reviewer", "quality", "engineer", "administrator"]
"""A role includes those before it. `anyone`: no log-in and no key; `predict`: photographs are inspected;
`operator`: reads the line and its parts; `reviewer`: reviews; `quality`: statistics, reports, exports and the
audit log; `engineer`: models, settings, deletions; `administrator`: users.
"""
KeyRole = Literal["anyone", "predict", "review", "admin"]
"""Roles of API keys: a key for `review` may do what `quality` may, one for `admin` everything."""

USER_ROLES: tuple[UserRole, ...] = get_args(UserRole)
RANKS: dict[Role, int] = {role: rank for rank, role in enumerate(get_args(Role))}
_HIGHEST: dict[KeyRole, Role] = {
    "anyone": "anyone",
    "predict": "predict",
    "review": "quality",
    "admin": "administrator",
}


def key_role_for(role: Role) -> KeyRole:
    """Returns the lowest role of a key that includes `role`."""
    return next(key_role for key_role, highest in _HIGHEST.items() if RANKS[highest] >= RANKS[role])
