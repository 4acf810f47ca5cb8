"""MkDocs hook: the site also holds files of the repository beside docs/, and links lead there.

In the repository a page links to a file by its path (`../kernels/README.md`). The site has only
what stands in docs/, so files outside that a page links to are added at the path they have in the
repository, and links are written anew from place to place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (
    "kernels/README.md",
    *(f"packages/qgpu-{p}/README.md" for p in ["isa", "ptx", "circuit", "merge"]),
)
"""Pages of the site that stand outside docs/."""

LINK = re.compile(r"(\]\()([^)\s#]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any, **_: Any) -> Files:
    """Adds the pages outside docs/, and what is linked from any page and stands outside."""
    for path in PAGES:
        files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    pages = [file for file in files if file.is_documentation_page()]
    for page in pages:
        for target in links_outside(
            source_of(page.src_uri), Path(page.abs_src_path or "").read_text()
        ):
            uri = site_uri(target)
            if files.get_file_from_path(uri) is None:
                files.append(File.generated(config, uri, abs_src_path=str(target)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Writes links anew: from the page's place in the site to the target's."""
    return LINK.sub(partial(_site_link, page.file.src_uri), markdown)


def source_of(uri: str) -> Path:
    """The file in the repository that stands at a place of the site."""
    return ROOT / uri if uri in PAGES else DOCS / uri


def site_uri(target: Path) -> str:
    """The place in the site of a file of the repository."""
    return target.relative_to(DOCS if target.is_relative_to(DOCS) else ROOT).as_posix()


def links_outside(source: Path, markdown: str) -> Iterator[Path]:
    """Files outside docs/, without pages, that a page links to."""
    for match in LINK.finditer(markdown):
        target = _target(source, match[2])
        if target and not target.is_relative_to(DOCS) and site_uri(target) not in PAGES:
            yield target


def _target(source: Path, link: str) -> Path | None:
    """The file that a link names, None for addresses, folders and what is not there."""
    target = Path(os.path.normpath(source.parent / link))
    return target if "://" not in link and target.is_file() else None


def _site_link(uri: str, match: re.Match[str]) -> str:
    target = _target(source_of(uri), match[2])
    if target is None:
        return match[0]
    link = os.path.relpath(site_uri(target), os.path.dirname(uri) or ".")
    return f"{match[1]}{link}{match[3]}"
