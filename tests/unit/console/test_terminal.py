"""What is written can be written, whatever the terminal's encoding."""

import io

from vector_index_mcp.console.terminal import write


def test_what_an_encoding_lacks_is_written_in_ascii():
    sink = io.BytesIO()
    stream = io.TextIOWrapper(sink, encoding="ascii", newline="\n")
    write("größe", stream)
    assert sink.getvalue() == b"gr\\xf6\\xdfe\n"
