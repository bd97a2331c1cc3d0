"""The version of this checkout, defined once in the package that becomes the wheel."""

from __future__ import annotations

from gantrymq import __version__

VERSION = __version__
