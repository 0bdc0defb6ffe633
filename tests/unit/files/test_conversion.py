"""HTML, notebooks, PDF and Word as Markdown."""

import io
import json
import zipfile
from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files import read
from vector_index_mcp.files.conversion import CONVERTED, ConversionError, converted
from vector_index_mcp.files.folder import Folder, Reading

needs_formats = pytest.mark.skipif(
    find_spec("mammoth") is None, reason="the extra `formats` is not installed"
)

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
            "outputs": [{"text": ["1\n"]}, {"data": {"text/plain": "x" * 9_999}}],
        },
        {"cell_type": "code", "source": " "},
    ],
}
PDF_TEXT = b"BT /F1 12 Tf 72 712 Td (Quarterly zebra report) Tj ET"
PDF = (
    b"%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R"
    b"/Resources<</Font<</F1<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>>>>>>>endobj\n"
    b"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n"
    b"trailer<</Root 1 0 R>>\n%%%%EOF" % (len(PDF_TEXT), PDF_TEXT)
)


def word(text):
    """A document of Word with one heading and one paragraph."""
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    body = (
        '<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>Minutes</w:t></w:r></w:p>'
        f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>"
    )
    kinds = (
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/></Types>'
    )
    leads = (
        '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
        '<Relationship Id="r1" Target="word/document.xml" Type="http://schemas.openxmlformats.org'
        '/officeDocument/2006/relationships/officeDocument"/></Relationships>'
    )
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        archive.writestr("[Content_Types].xml", kinds)
        archive.writestr("_rels/.rels", leads)
        archive.writestr(
            "word/document.xml", f"<w:document {space}><w:body>{body}</w:body></w:document>"
        )
    return held.getvalue()


def test_html_becomes_markdown_without_what_nobody_reads():
    text = converted(HTML.encode(), "html")
    assert text.startswith("# Release notes\n\n## Version 2\n")
    assert "It is **faster**, see [this](a%20b.html)." in text
    assert "- one\n- two" in text
    assert "```\ncode  here\n```" in text
    assert "| 1 | 2 |" in text
    assert not any(word in text for word in ("alert", "Home", "p {}"))
    assert "\n\n\n" not in text


def test_html_says_in_which_encoding_it_is():
    page = '<meta charset="iso-8859-1"><p>Gr\xfc\xdfe</p>'
    assert "Grüße" in converted(page.encode("latin-1"), "html")


def test_a_notebook_becomes_its_texts_and_its_code():
    text = converted(json.dumps(NOTEBOOK).encode(), "notebook")
    assert text.startswith("# Analysis\nof sales\n\n```python\nprint(1)\n```\n\n```\n1\nxxx")
    assert text.endswith("x\n```")
    assert len(text) < 2_200


@needs_formats
def test_a_pdf_becomes_its_text():
    assert converted(PDF, "pdf").strip() == "Quarterly zebra report"


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


@given(st.sampled_from(sorted(CONVERTED)), st.binary(max_size=300))
def test_no_bytes_raise_anything_else(language, data):
    try:
        assert isinstance(converted(data, language), str)
    except ConversionError as error:
        assert str(error)


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
