"""Converts HTML, notebooks, PDF and Word to Markdown.

This runs only in children of the service, because parsers of foreign files may crash, hang or take
all memory. Libraries are imported when a file needs them; PDF and Word need the extra `formats`.
"""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

NEEDS_EXTRA = "needs the extra `formats` to be read"
UNREADABLE = "cannot be converted to text"
_OF_THE_EXTRA = ("mammoth", "pypdfium2")

_MOST_PAGES = 2_000  # of a PDF
_MOST_CELLS = 10_000
_MOST_OUTPUT_CHARS = 2_000  # of each cell of a notebook: people seldom search for outputs


def has_extra() -> bool:
    """Return whether the extra `formats` is installed."""
    return all(find_spec(name) is not None for name in _OF_THE_EXTRA)


class ConversionError(Exception):
    """A document has no text, or its text cannot be extracted; the message says why."""


def converted(data: bytes, language: str) -> str:
    """Return the text of a document as Markdown.

    Args:
        data: The file's content.
        language: One of CONVERTED.

    Raises:
        ConversionError: If the document cannot be converted.
    """
    try:
        return _CONVERTERS[language](data)
    except ConversionError:
        raise
    except ImportError as error:
        raise ConversionError(NEEDS_EXTRA) from error
    except MemoryError:
        raise
    except Exception as error:
        raise ConversionError(f"{UNREADABLE} ({type(error).__name__})") from error


def _html(data: bytes) -> str:
    from bs4 import BeautifulSoup
    from markdownify import MarkdownConverter

    soup = BeautifulSoup(data, "html.parser")  # also detects the encoding
    for tag in soup(["script", "style", "template", "noscript", "svg", "nav", "iframe"]):
        tag.decompose()
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    if soup.head is not None:
        soup.head.decompose()
    headings = [h1 for h1 in soup("h1") if h1.get_text(strip=True) and not h1.find_parent("pre")]
    # Names stay as they are: searches look for `snake_case`, and masks for `ghp_…`.
    converter = MarkdownConverter(
        heading_style="ATX",
        bullets="-",
        strip=["img"],
        escape_asterisks=False,
        escape_underscores=False,
    )
    text = _tidy(converter.convert_soup(soup))
    has_heading = bool(headings) and "\n# " in f"\n{text}"  # none in a list or a table
    return f"# {title}\n\n{text}" if title and not has_heading else text


def _word(data: bytes) -> str:
    import mammoth

    return _html(mammoth.convert_to_html(io.BytesIO(data)).value.encode())


def _pdf(data: bytes) -> str:
    import pypdfium2

    document = pypdfium2.PdfDocument(data)
    try:
        pages = []
        for number in range(min(len(document), _MOST_PAGES)):
            page = document[number]
            text = page.get_textpage()
            pages.append(_tidy(text.get_text_bounded()))
            text.close()
            page.close()
    finally:
        document.close()
    if not any(pages):
        raise ConversionError("has no text, only pictures")
    return "\n\n".join(pages)


def _notebook(data: bytes) -> str:
    notebook = json.loads(data)
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise ConversionError(UNREADABLE)
    metadata = notebook.get("metadata")
    language = _named(_named(metadata, "kernelspec"), "language")
    fence = language if isinstance(language, str) else ""
    return "\n\n".join(_cells(notebook["cells"][:_MOST_CELLS], fence))


def _cells(cells: list[Any], language: str) -> Iterator[str]:
    for cell in cells:
        source = _joined(_named(cell, "source")).strip("\n")
        if not source.strip():
            continue
        if _named(cell, "cell_type") == "code":
            yield f"```{language}\n{source}\n```"
            outputs = _named(cell, "outputs")
            printed = "".join(map(_output, outputs)) if isinstance(outputs, list) else ""
            if shown := _first_lines(printed):
                yield f"```\n{shown}\n```"
        else:
            yield source


def _first_lines(printed: str) -> str:
    """Return the whole lines at the beginning: in a part of one, no mask knows a credential."""
    if len(printed) > _MOST_OUTPUT_CHARS:
        printed = printed[: printed.rfind("\n", 0, _MOST_OUTPUT_CHARS) + 1]
    return printed.rstrip()


def _output(output: Any) -> str:
    data = _named(output, "data")
    return _joined(_named(output, "text") or _named(data, "text/plain"))


def _named(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _joined(source: Any) -> str:
    """Return the text of a cell, which a notebook stores as a string or as a list of lines."""
    return "".join(map(str, source)) if isinstance(source, list) else str(source or "")


def _tidy(text: str) -> str:
    """Return `text` with line feeds only, and at most one empty line in a row."""
    lines = [line.rstrip() for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n")]
    kept = [line for n, line in enumerate(lines) if line or (n and lines[n - 1])]
    return "\n".join(kept).strip("\n") + "\n" if any(kept) else ""


_CONVERTERS: Mapping[str, Callable[[bytes], str]] = {
    "html": _html,
    "notebook": _notebook,
    "pdf": _pdf,
    "docx": _word,
}
CONVERTED = frozenset(_CONVERTERS)
"""The languages of the documents that this module converts."""
