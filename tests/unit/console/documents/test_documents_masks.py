"""What is said of a folder in which a mask takes no document."""

import pytest
from writing import write

from vector_index_mcp.console.documents.masks import hint


@pytest.mark.parametrize(
    ("files", "mask", "told"),
    [
        ([], "**/*.md", "No file there ends like a document"),
        (["a.png", ".hidden/b.md", ".c.md"], "**/*.md", "No file there ends like a document"),
        (["a.txt"], "**/*.md", "There are: 1 .txt"),
        (["a.txt"], "**/*.md", "again with --mask '**/*.txt'"),
        (["a.txt", "b/c.pdf", "b/d.pdf"], "*.md", "again with --mask '**/*.{pdf,txt}'"),
        (["deep/a.md"], "*.md", "again with --mask '**/*.md'"),
        ([f"{n}.{e}" for e in ("md", "txt", "rst", "adoc", "org", "tex", "html") for n in "ab"],
         "x", "There are: 2 .adoc, 2 .html, 2 .md, 2 .org, 2 .rst, 2 .tex\n"),
    ],
)  # fmt: skip
def test_the_mask_that_takes_what_is_there_is_named(tmp_path, files, mask, told):
    write(tmp_path, dict.fromkeys(files, "text"))
    said = hint(tmp_path, mask)
    assert said.startswith(f"No document: nothing in {tmp_path} that could be read matches")
    assert told in said
    assert said.count(" .") <= 6


def test_a_mask_that_takes_all_is_not_named_again(tmp_path):
    write(tmp_path, {"a.md": ""})
    assert "--mask" not in hint(tmp_path, "**/*.md")
