"""What a front end knows of the tools, from the answers that it carries to its client.

It must know which tools only read, since a call of those may be repeated, and whether another
service has the tools that the client knows. Imports the standard library only.
"""

from typing import Any

from vector_index_mcp.background import messages
from vector_index_mcp.background.messages import Message

_OUR_ID = "vector-index-mcp: which tools"


class Catalogue:
    """The tools as the client has seen them."""

    def __init__(self) -> None:
        self._question: dict[str, Any] = {}
        self._listed: Any = None
        self._reading: set[str] = set()
        self._is_promised = False

    def note(self, message: Message, line: bytes, answer: dict[str, Any]) -> None:
        """Learn from the answer to a client's request.

        Args:
            message: What the request is.
            line: The request's line.
            answer: The values of the answer.
        """
        result = messages.object_of(answer.get("result"))
        if message.method == messages.INITIALIZE and result:
            offers = messages.object_of(result.get("capabilities"))
            tools = messages.object_of(offers.get("tools"))
            self._is_promised = tools.get("listChanged") is True
        elif message.method == messages.LIST_TOOLS and isinstance(result.get("tools"), list):
            self._question, self._listed = messages.parsed(line), result["tools"]
            self._reading = {name for tool in self._listed if (name := _if_it_reads(tool))}

    def only_reads(self, name: str) -> bool:
        """Whether the tool of this name is known to change nothing."""
        return name in self._reading

    @property
    def question(self) -> bytes:
        """The client's request for the list, to be asked by us; empty if it never asked."""
        return messages.line_of({**self._question, "id": _OUR_ID}) if self._question else b""

    def differs(self, answer: dict[str, Any]) -> bool:
        """Whether a service that answers the question so has other tools than the client knows."""
        tools = messages.object_of(answer.get("result")).get("tools")
        return isinstance(tools, list) and tools != self._listed

    def notes_of_change(self, listeners: dict[str, bytes]) -> list[bytes]:
        """The notifications of changed tools that the client expects, a line each.

        Args:
            listeners: The lines of its requests to listen, by their ids as JSON.
        """
        whole = [messages.tools_changed()] if self._is_promised else []
        wanting = [identity for identity, line in listeners.items() if _wants_tools(line)]
        return [*whole, *map(messages.tools_changed, wanting)]


def _if_it_reads(tool: Any) -> str:
    values = messages.object_of(tool)
    hints, name = messages.object_of(values.get("annotations")), values.get("name")
    return name if hints.get("readOnlyHint") is True and isinstance(name, str) else ""


def _wants_tools(line: bytes) -> bool:
    parameters = messages.object_of(messages.parsed(line).get("params"))
    return messages.object_of(parameters.get("notifications")).get("toolsListChanged") is True
