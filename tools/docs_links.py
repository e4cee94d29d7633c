"""Checks links of the built site: each linked file, and each anchor within a page, must exist.

Links to other sites are not fetched (the build needs no network); only their form is checked.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    """The anchors and the links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("id", "name") and value:
                self.places.add(value)
            elif name in ("href", "src") and value is not None:
                self.links.append(value)


def broken_links(site: Path) -> list[str]:
    """The broken links, as `page: link`."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme in ("mailto", "data", "javascript"):
                continue
            if parts.scheme or parts.netloc:
                fits = parts.scheme in ("http", "https") and "." in parts.netloc
            else:
                there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
                target_page = pages.get(there)
                fits = there.exists() and (
                    not parts.fragment or target_page is None or unquote(parts.fragment) in target_page.places
                )
            if not fits:
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken
