"""`python -m gantrymq run module:consumer`."""

import sys

from gantrymq.runner.command import main

if __name__ == "__main__":
    sys.exit(main())
