"""Lines for a shell: whatever a name holds, the shell hands on the same words and does nothing else."""

from __future__ import annotations

import json
import shlex

from dashboard.bodies.commands import admin_line, curl_line

NASTY = "a'b\"c; $(touch x) `y` \\ é"


def test_words_reach_the_command_as_they_are() -> None:
    words = shlex.split(admin_line("127.0.0.1:9876", "messages", "resend", NASTY, "id"))
    assert words == ["gantry", "admin", "messages", "resend", NASTY, "id", "-n", "127.0.0.1:9876"]


def test_the_token_is_the_shells_and_the_body_is_json() -> None:
    line = curl_line("http://localhost:8080/api/v1/x'y", {"q": NASTY})
    words = shlex.split(line)
    assert "http://localhost:8080/api/v1/x'y" in words and json.loads(words[-1]) == {"q": NASTY}
    assert '"Authorization: Bearer $GANTRY_TOKEN"' in line
    assert "-d" not in shlex.split(curl_line("http://localhost/"))
