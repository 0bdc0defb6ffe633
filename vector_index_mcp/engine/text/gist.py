"""Makes the gist of a chunk of code: where it stands, what it defines, and its comments. Pure.

Who asks a question speaks of what code is for, and that stands in names and comments. In the vector
of a whole chunk these are a few words among many, so the vector of a gist is added to it.
"""

import re

from vector_index_mcp.engine.text import scripts
from vector_index_mcp.engine.text.comments import comments_in
from vector_index_mcp.engine.text.words import spelled_out

_LONGEST_CHARS = 300  # 60 tokens; the mean is 155 characters, a fifth of what is read of a chunk
# The word that begins a definition in most languages, a receiver as Go has it, and the name.
_DEFINITION = re.compile(
    r"\b(?:class|def|defmodule|enum|export const|extension|fn|fun|func|function|impl|interface"
    r"|macro_rules!|module|namespace|object|proc|protocol|record|struct|sub|trait|type)"
    r"[ \t]+(?:\([^()\n]{0,100}\)[ \t]*)?([A-Za-z_][\w.:]*)"
)


def gist_of(text: str) -> str:
    """Return the gist of a text as `fields.embedded_text` makes it; empty if nothing tells."""
    place, _, code = text.partition("\n")
    names = " ".join(dict.fromkeys(_DEFINITION.findall(code)))
    comments = " ".join(comments_in(code))
    if not names and not comments and " " not in place:  # the text has its file's name, too
        return ""
    told = f"{place} {spelled_out(names)} {comments}"
    return scripts.words_of(told[:_LONGEST_CHARS]).strip()
