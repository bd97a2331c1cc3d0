"""SECURITY.md says what somebody needs who found a hole."""

from __future__ import annotations

import re

from tests.docs.pages import ROOT


def test_s66_the_policy_says_how_to_report_and_what_is_supported() -> None:
    """S66: privately, by the repository's own means; a personal address would be nobody's in a year."""
    policy = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "Report a vulnerability" in policy and "private" in policy
    assert "## Supported versions" in policy and "docs/security.md" in policy
    assert not re.search(r"[\w.+-]+@[\w-]+\.\w+", policy)
