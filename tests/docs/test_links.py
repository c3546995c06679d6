"""Links between pages lead to files and headings that exist."""

import re
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """Return the pages that people write: no part of what is built."""
    found = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    found += (REPOSITORY / "docs" / "notebooks").glob("*.ipynb")
    return [path for path in found if not {"_build", "generated"} & {*path.parts}]


def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as forges and Sphinx make them."""
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", each).lower() for each in headings)
    return {re.sub(r"[^\w\- ]", "", each.strip()).replace(" ", "-") for each in plain}


def broken(page: Path) -> list[str]:
    """Return the links of a page to files or headings that there are not."""
    found = []
    for match in LINK.finditer(page.read_text(encoding="utf-8")):
        link = match[1] or match[2]
        name, _, heading = link.partition("#")
        target = page.parent / name if name else page
        if link.startswith(("https:", "http:", "mailto:")):
            continue
        if not target.exists() or (heading and heading not in anchors(target)):
            found.append(link)
    return found


def test_every_link_between_pages_leads_somewhere():
    assert len(pages()) > 90
    assert {
        str(page.relative_to(REPOSITORY)): broken(page) for page in pages() if broken(page)
    } == {}


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One `two`\n[a](#one-two) [b](none.md) [c](page.md#three) [d](page.md)\n")
    assert broken(page) == ["none.md", "page.md#three"]
