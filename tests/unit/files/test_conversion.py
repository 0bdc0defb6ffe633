"""HTML, notebooks, PDF and Word as Markdown."""

import json

import pytest
from formats import PDF, needs_formats, word
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files import read
from vector_index_mcp.files.conversion import CONVERTED, ConversionError, converted
from vector_index_mcp.files.folder import Folder, Reading

HTML = """<!doctype html><html><head><title>Release notes</title><style>p {}</style></head>
<body><nav>Home</nav><h2>Version 2</h2><p>It is <b>faster</b>, see <a href="a%20b.html">this</a>.
<script>alert(1)</script><ul><li>one</li><li>two</li></ul><pre>code  here</pre>
<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table></body></html>"""
NOTEBOOK = {
    "metadata": {"kernelspec": {"language": "python"}},
    "cells": [
        {"cell_type": "markdown", "source": ["# Analysis\n", "of sales"]},
        {
            "cell_type": "code",
            "source": "print(1)\n",
            "outputs": [{"text": ["1\n"]}, {"data": {"text/plain": "xxx\n" * 900}}],
        },
        {"cell_type": "code", "source": " "},
    ],
}


@pytest.mark.slow
def test_html_becomes_markdown_without_what_nobody_reads():
    text = converted(HTML.encode(), "html")
    assert text.startswith("# Release notes\n\n## Version 2\n")
    assert "It is **faster**, see [this](a%20b.html)." in text
    assert "- one\n- two" in text
    assert "```\ncode  here\n```" in text
    assert "| 1 | 2 |" in text
    assert not any(word in text for word in ("alert", "Home", "p {}"))
    assert "\n\n\n" not in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "first"),
    [
        ("<pre># a comment\nmake</pre>", "# Page"),
        ("<pre><h1>shown</h1></pre>", "# Page"),
        ("<p># 1 of the charts</p>", "# Page"),
        ("<ul><li><h1>item</h1></li></ul>", "# Page"),
        ("<h1><img alt='logo'></h1>", "# Page"),
        ("<pre># a comment</pre><h1>Own</h1>", "```"),
        ("<h1>Own</h1>", "# Own"),
    ],
)
def test_the_title_of_a_page_is_its_heading_unless_it_has_one_outside_of_code(body, first):
    text = converted(f"<head><title>Page</title></head>{body}".encode(), "html")
    assert text.split("\n")[0] == first


@pytest.mark.slow
def test_html_says_in_which_encoding_it_is():
    page = '<meta charset="iso-8859-1"><p>Gr\xfc\xdfe</p>'
    assert "Grüße" in converted(page.encode("latin-1"), "html")


def test_a_notebook_becomes_its_texts_and_its_code():
    text = converted(json.dumps(NOTEBOOK).encode(), "notebook")
    assert text.startswith("# Analysis\nof sales\n\n```python\nprint(1)\n```\n\n```\n1\nxxx")
    assert text.endswith("xxx\n```")
    assert len(text) < 2_200


TOKEN = "ghp_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7bC0eF3hJ6"
SECRETS = (
    TOKEN,
    f"sk_live_{TOKEN[4:28]}",
    f"github_pat_11{TOKEN[4:24]}_{TOKEN[4:]}{TOKEN[4:27]}",
    f"api_key = '{TOKEN[4:]}'",
    f"AWS_SECRET_ACCESS_KEY={TOKEN[4:]}{TOKEN[4:8]}",
)


@pytest.mark.slow
@needs_formats
@pytest.mark.parametrize("secret", SECRETS, ids=range(len(SECRETS)))
def test_credentials_are_masked_in_html_and_word_as_in_plain_text(tmp_path, secret):
    said = f"The token is {secret} now."
    (tmp_path / "a.html").write_text(f"<p>The token is <b>{secret}</b> now.</p>", encoding="utf-8")
    (tmp_path / "b.docx").write_bytes(word(said))
    (tmp_path / "c.md").write_text(f"{said}\n", encoding="utf-8")

    for name in ("a.html", "b.docx", "c.md"):
        shown = read.read(reading(tmp_path), name)
        assert (shown.masked, TOKEN[4:20] in shown.text) == (1, False), shown.text


@pytest.mark.parametrize("before", range(1_960, 2_001))
def test_no_part_of_a_credential_is_left_where_an_output_is_cut(tmp_path, before):
    printed = "x" * (before - 1) + f" {TOKEN}\n"
    cell = {"cell_type": "code", "source": "run()", "outputs": [{"text": printed}]}
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": [cell]}), encoding="utf-8")

    assert TOKEN[:8] not in read.read(reading(tmp_path), "a.ipynb").text


def reading(folder):
    return Folder(folder, reading=Reading(100_000, converts=True))


@pytest.mark.slow
def test_names_in_html_stay_as_they_are():
    page = b"<h1>max_chars</h1><p>Set <code>max_chars</code>, snake_case or 2*3*4.</p>"

    assert converted(page, "html") == "# max_chars\n\nSet `max_chars`, snake_case or 2*3*4.\n"


@pytest.mark.slow
@needs_formats
def test_a_pdf_becomes_its_text():
    assert converted(PDF, "pdf").strip() == "Quarterly zebra report"


@pytest.mark.slow
@needs_formats
def test_word_becomes_markdown():
    text = converted(word("We agreed on <w:br/> zebras.".replace("<w:br/>", "")), "docx")
    assert "Minutes" in text
    assert "We agreed on  zebras." in text or "We agreed on zebras." in text


@needs_formats
@pytest.mark.parametrize("language", ["pdf", "docx", "notebook"])
@pytest.mark.parametrize("data", [b"", b"nothing of the kind", b"%PDF-1.4\n", b"PK\x03\x04", b"[]"])
def test_what_is_broken_is_said_to_be(language, data):
    with pytest.raises(ConversionError, match="convert|pictures"):
        converted(data, language)


@pytest.mark.slow
@given(st.sampled_from(sorted(CONVERTED)), st.binary(max_size=300))
def test_no_bytes_raise_anything_else(language, data):
    try:
        assert isinstance(converted(data, language), str)
    except ConversionError as error:
        assert str(error)


@pytest.mark.slow
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=9),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    "cells source cell_type outputs data text metadata kernelspec".split()
                ),
                inner,
            )
        ),
    )
)
def test_no_notebook_raises_anything_else(value):
    try:
        converted(json.dumps({"cells": [value], "metadata": value}).encode(), "notebook")
    except ConversionError as error:
        assert str(error)


@pytest.mark.parametrize(("converts", "beginning"), [(True, "# Release"), (False, "<!doctype")])
def test_a_folder_says_whether_its_documents_are_converted(tmp_path, converts, beginning):
    (tmp_path / "a.html").write_text(HTML, "utf-8")
    folder = Folder(tmp_path, reading=Reading(converts=converts))
    found = read.read(folder, "a.html")
    assert isinstance(found, read.Text)
    assert found.text.startswith(beginning)
    assert read.is_converted(folder, "a.html") is converts
    assert ("converted" in folder.reading.version) is converts


def test_what_cannot_be_converted_is_skipped_with_the_reason(tmp_path):
    (tmp_path / "a.ipynb").write_text("{", "utf-8")
    found = read.read(Folder(tmp_path, reading=Reading(converts=True)), "a.ipynb")
    assert isinstance(found, read.Skipped)
    assert found.reason.startswith("cannot be converted to text")
