"""Roles of users, and the roles of API keys that correspond to them."""

from typing import Literal, get_args

UserRole = Literal["operator", "reviewer", "quality", "engineer", "administrator"]
Role = Literal["train", "anyone", "predict", UserRole]
"""A role includes those before it, from `anyone` on. `anyone`: no log-in and no key; `predict`: photographs
are inspected; `operator`: reads the line and its parts; `reviewer`: reviews; `quality`: statistics, reports,
exports and the audit log; `engineer`: models, settings, deletions; `administrator`: users.

`train` stands beside them: training workers fetch jobs and their data, and may do nothing else. No other role
includes it.
"""
KeyRole = Literal["train", "anyone", "predict", "review", "admin"]
"""Roles of API keys: a key for `review` may do what `quality` may, one for `admin` everything but `train`."""

USER_ROLES: tuple[UserRole, ...] = get_args(UserRole)
RANKS: dict[Role, int] = {role: rank for rank, role in enumerate(get_args(Role))}
KEY_RANKS: dict[KeyRole, int] = {role: rank for rank, role in enumerate(get_args(KeyRole))}
_HIGHEST: dict[KeyRole, Role] = {
    "anyone": "anyone",
    "predict": "predict",
    "review": "quality",
    "admin": "administrator",
    "train": "train",
}


def user_roles_of(role: UserRole) -> tuple[UserRole, ...]:
    """Returns a role and those that it includes, the lowest first."""
    return USER_ROLES[: USER_ROLES.index(role) + 1]


def includes(held: Role, needed: Role) -> bool:
    """Returns whether somebody with the role `held` may do what the role `needed` may."""
    if "train" in (held, needed):
        return needed in (held, "anyone")
    return RANKS[held] >= RANKS[needed]


def key_includes(held: KeyRole, needed: KeyRole) -> bool:
    """Returns whether a key with the role `held` may do what one with the role `needed` may."""
    return includes(_HIGHEST[held], _HIGHEST[needed])


def key_role_for(role: Role) -> KeyRole:
    """Returns the lowest role of a key that includes `role`."""
    return next(key_role for key_role, highest in _HIGHEST.items() if includes(highest, role))
