"""What a role may do stands on pages in words."""

from __future__ import annotations

import pytest
from django.utils import translation

from dashboard.access.permissions import ROLE_PERMISSIONS, Permission
from dashboard.people.permission_words import permissions_in_words

OF_A_ROLE = sorted(frozenset[Permission]().union(*ROLE_PERMISSIONS.values()))


@pytest.mark.parametrize("permission", OF_A_ROLE)
def test_each_permission_of_a_role_has_words_in_both_languages(permission: Permission) -> None:
    said = []
    for language in ("en", "zh-hans"):
        with translation.override(language):
            said.append(str(permissions_in_words([permission])))
    assert "" not in said and permission not in said and len(set(said)) == 2


def test_a_roles_permissions_stand_side_by_side_in_the_language_of_the_page() -> None:
    with translation.override("zh-hans"):
        assert permissions_in_words([Permission.ALARMS_WRITE, Permission.TOPICS_READ]) == (
            "查看主题；确认和静默告警、修改告警规则"
        )
