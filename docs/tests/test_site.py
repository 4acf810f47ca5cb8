"""The documents as a site: complete, without warnings, and nothing from elsewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site."""
    if find_spec("mkdocs") is None or find_spec("material") is None:
        pytest.skip("the group docs is not installed (uv sync --group docs)")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def _pages_in_nav() -> list[str]:
    text = (ROOT / "mkdocs.yml").read_text()
    return re.findall(r": (\S+\.md)$", text.split("\nnav:\n")[1], re.MULTILINE)


def test_the_navigation_names_every_page_once() -> None:
    named = _pages_in_nav()
    assert len(named) == len(set(named))
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    outside = {path for path in named if path not in there}
    assert there <= set(named), "mkdocs.yml does not name them"
    assert outside == {path for path in outside if (ROOT / path).is_file()}
    beside = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("packages/*/README.md")}
    assert beside <= outside, "mkdocs.yml does not name them"


def test_the_index_links_to_every_page_of_its_folder() -> None:
    linked = set(re.findall(r"\]\(([\w/.-]+\.md)\)", (DOCS / "index.md").read_text()))
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")} - {"index.md"}
    assert there <= linked


def test_links_of_the_markdown_files_lead_to_files() -> None:
    for page in [ROOT / "README.md", ROOT / "kernels" / "README.md", *DOCS.rglob("*.md")]:
        for link in re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", _without_code(page.read_text())):
            assert "://" in link or (page.parent / link).exists(), f"{page}: {link}"


def _without_code(markdown: str) -> str:
    return re.sub(r"```.*?```|`[^`\n]*`", "", markdown, flags=re.DOTALL)


def _links(page: Path) -> Iterator[str]:
    return iter(re.findall(r'(?:href|src)="([^"#?]+)', page.read_text()))


def test_every_link_of_the_site_leads_to_a_file_of_it(site: Path) -> None:
    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) == len(_pages_in_nav())
    for page in pages:
        for link in _links(page):
            if not re.match("[a-z]+:", link):
                target = (page.parent / link).resolve()
                assert target.is_file() or (target / "index.html").is_file(), f"{page.name}: {link}"


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(
            r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=\"?(https?:[^\" >]+)", page.read_text()
        )
        assert loaded == [], page.name
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?https?:", sheet.read_text()), sheet.name


def test_files_outside_docs_are_in_the_site(site: Path) -> None:
    assert (site / "kernels" / "sort" / "bitonic_sort.cu").is_file()
    assert 'href="kernels/index.html"' in (site / "expressions.html").read_text()
    assert 'href="../expressions.html"' in (site / "kernels" / "index.html").read_text()
