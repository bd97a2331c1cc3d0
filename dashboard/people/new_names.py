"""Names that a new account may have: none that reads as another one (S17). Accounts that are there keep theirs.

The rules are Unicode's for names of accounts: normal form NFKC (UAX 31), and one script, or Latin letters beside those
of Chinese, Japanese or Korean ("highly restrictive", UTS 39). Python knows no scripts, but names of characters begin
with them.
"""

from __future__ import annotations

import re
import unicodedata

from django.core.exceptions import ValidationError
from django.utils.translation import gettext

from dashboard.models.management import User

HAN = "CJK"
TOGETHER = (
    frozenset({"LATIN", HAN, "HIRAGANA", "KATAKANA"}),
    frozenset({"LATIN", HAN, "BOPOMOFO"}),
    frozenset({"LATIN", HAN, "HANGUL"}),
)
_ALIASES = {"IDEOGRAPHIC": HAN, "EXTENDED": "ARABIC"}  # 々; Persian digits


def check_new_name(name: str) -> None:
    """Raises ValidationError, with sentences for who chose it."""
    for validator in User._meta.get_field("username").validators:
        validator(name)
    if unicodedata.normalize("NFKC", name) != name:
        raise ValidationError(gettext("This name has characters that look like others. Use plain letters and digits."))
    scripts = {script_of(char) for char in name if not char.isascii() or char.isalpha()}
    if len(scripts) > 1 and not any(scripts <= together for together in TOGETHER):
        raise ValidationError(gettext("This name mixes letters of different scripts. Use one script."))


def script_of(char: str) -> str:
    """The script of a letter or digit, in capitals: LATIN, CYRILLIC, CJK."""
    word = re.split("[ -]", unicodedata.name(char, "UNKNOWN"), maxsplit=1)[0]
    return _ALIASES.get(word, word)
