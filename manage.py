#!/usr/bin/env python3
"""Django's command line: `manage.py up` is `gantry up`, `manage.py users` is `gantry users`."""

import sys

from dashboard.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
