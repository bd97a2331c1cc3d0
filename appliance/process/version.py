"""The version of this checkout. It is written once, in the package that becomes the wheel."""

from __future__ import annotations

from gantrymq import __version__

VERSION = __version__
