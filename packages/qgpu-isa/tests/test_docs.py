"""The generated documents are those in the repository."""

from pathlib import Path

import pytest
from qgpu_isa.docgen import documents, isa_markdown, stale_documents, write_documents
from qgpu_isa.encoding import BRANCH_FIELDS, SLOT_FIELDS
from qgpu_isa.instruction import INSTRUCTIONS
from qgpu_isa.vocabulary import TokenClass

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize("name", sorted(documents()))
def test_the_documents_are_fresh(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    assert text == documents()[name], "run: uv run qgpu-isa docs"


def test_everything_is_documented() -> None:
    text = isa_markdown()
    for name in (*(i.name for i in INSTRUCTIONS), *SLOT_FIELDS, *BRANCH_FIELDS):
        assert f"`{name}`" in text
    for cls in TokenClass:
        assert f"| {cls.name} " in documents()["tokens.md"]


def test_stale_documents_are_found_and_written(tmp_path: Path) -> None:
    assert stale_documents(tmp_path) == [tmp_path / "isa.md", tmp_path / "tokens.md"]
    write_documents(tmp_path)
    assert stale_documents(tmp_path) == []
    (tmp_path / "isa.md").write_text("old")
    assert write_documents(tmp_path) == [tmp_path / "isa.md"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["isa.md", "tokens.md"]
