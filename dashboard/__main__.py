"""Django's command line, which a checkout's manage.py calls, too. `manage.py up` is `gantry up`; started by its
guardian, `python -m dashboard up` is the web process. `manage.py users` is `gantry users`, which understands the words
first."""

from __future__ import annotations

import gc
import os
import sys

from appliance.process.parent_death import end_with_parent
from appliance.settings.variables import GUARDIAN_VARIABLE


def main() -> int:
    is_up = sys.argv[1:2] == ["up"] and GUARDIAN_VARIABLE not in os.environ
    is_users = sys.argv[1:2] == ["users"] and not "".join(sys.argv[2:3]).startswith("{")  # JSON is what gantry hands on
    if is_up or is_users:
        from appliance.__main__ import main as gantry

        return gantry(sys.argv[1:])
    os.umask(0o077)  # what is made in the data folder is its owner's alone
    end_with_parent()
    if sys.argv[1:2] == ["up"]:
        gc.disable()  # until it serves: what a start imports is no garbage, and to look through it takes a tenth of it
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "dashboard.settings")
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
    return 0


if __name__ == "__main__":
    sys.exit(main())
