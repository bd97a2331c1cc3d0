"""For MkDocs: the pages of the checkout's root become pages of the site, and links lead where the site has them.

README.md is the site's first page. A link to what is no page, such as a file of the code, becomes plain text.
The dashboard serves the site under its own policy for content, so scripts within pages become files. What the theme
leaves without a name, or out of reach of a keyboard, is repaired here.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import shutil
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
FROM_ROOT = {"README.md": "index.md"} | {
    name: name for name in ("ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
}
IMAGE = re.compile(r"!\[(?P<text>[^\]]+)\]\(docs/(?P<target>[^)\s]+)\)")  # of README.md
LINK = re.compile(r"(?<!!)\[(?P<text>[^\]]+)\]\((?P<target>[^)\s:#]+)(?P<anchor>#[^)\s]*)?\)")
INLINE = re.compile(r"<script>(?P<code>.*?)</script>", re.DOTALL)  # those with attributes are files, or data
REPAIRS = (  # of a page
    ('<div class="md-search" data-md-component="search" role="dialog"', r'\g<0> aria-label="Search"'),
    (r"<th((?: [^>]*)?)></th>", r"<td\1></td>"),  # a table's empty corner is no heading
)
SCRIPT_REPAIRS = (  # of the theme's own
    (r'"nav",\{class:"md-code__nav"\}', '"div",{class:"md-code__nav"}'),  # a button is not a place to go to
    (r'class:"md-typeset__scrollwrap"', r"\g<0>,tabIndex:0"),  # a wide table scrolls
    (r'(\w)&&\w(?=\?e\.setAttribute\("tabindex","0"\))', r"\1"),  # code that scrolls, also where nothing hovers
)
NOT_SERVED = ("sitemap.xml", "sitemap.xml.gz", "assets/javascripts/lunr")  # for search engines; other languages' search
_scripts: dict[str, str] = {}  # of this build: name to code


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root."""
    for name, page in FROM_ROOT.items():
        files.append(File.generated(config, page, content=(ROOT / name).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Have the links lead to pages of the site."""
    source = page.file.src_uri
    names = {site: name for name, site in FROM_ROOT.items()}
    place = names.get(source, f"docs/{source}")  # in the checkout

    def replaced(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(place), link["target"]))
        site = FROM_ROOT.get(target, target.removeprefix("docs/") if target.startswith("docs/") else "")
        if files.get_file_from_path(site) is None:
            return link["text"]
        there = posixpath.relpath(site, posixpath.dirname(source) or ".")
        return f"[{link['text']}]({there}{link['anchor'] or ''})"

    return LINK.sub(replaced, IMAGE.sub(r"![\g<text>](\g<target>)", markdown))


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Have each script of the page in a file of its own, and repair the page."""
    for wrong, right in REPAIRS:
        output = re.sub(wrong, right, output)
    top = posixpath.relpath(".", posixpath.dirname(page.url) or ".")

    def replaced(script: re.Match[str]) -> str:
        name = f"assets/javascripts/{hashlib.sha256(script['code'].encode()).hexdigest()[:12]}.js"
        _scripts[name] = script["code"]
        return f'<script src="{top}/{name}"></script>'

    return INLINE.sub(replaced, output)


def on_post_build(config: MkDocsConfig) -> None:
    """Write those files, and remove what no page asks for. Raises ValueError for a script that has changed."""
    site = Path(config.site_dir)
    (bundle,) = site.glob("assets/javascripts/bundle.*.js")
    text = bundle.read_text(encoding="utf-8")
    for wrong, right in SCRIPT_REPAIRS:
        text, found = re.subn(wrong, right, text)
        if found != 1:
            raise ValueError(f"{bundle.name} has {wrong} {found} times: see SCRIPT_REPAIRS")
    bundle.write_text(text, encoding="utf-8")
    for name, code in _scripts.items():
        (site / name).write_text(code, encoding="utf-8")
    for unused in (*(site / name for name in NOT_SERVED), *site.rglob("*.map"), site / "404.html"):
        shutil.rmtree(unused) if unused.is_dir() else unused.unlink(missing_ok=True)
