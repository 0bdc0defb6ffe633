"""Answers the calls of commands: with a result, or with a sentence about what is wrong."""

from typing import TYPE_CHECKING, Any

from vector_index_mcp.background.greeting import WRONG_USE
from vector_index_mcp.errors import SYSTEM_ERRORS, VectorIndexError, is_wrong_use, sentence
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.sets import Service, ToolSet

if TYPE_CHECKING:
    from vector_index_mcp.background.host import Tell


async def answered(
    tool_set: ToolSet, service: Lazily[Service], request: dict[str, Any], tell: "Tell"
) -> dict[str, Any]:
    """Answer a call; the answer is the last line on the call's connection.

    Args:
        tool_set: The tool set of the service.
        service: Answers, once it is loaded.
        request: The line behind the greeting, with `call` and `arguments`.
        tell: Sends progress to the command.

    Returns:
        `result`, or `error` and the exit `status` for the command.
    """
    name, given = request.get("call"), request.get("arguments")
    if tool_set.answer is None or not isinstance(name, str) or not isinstance(given, dict):
        return {"error": f"the service of {tool_set.name} has no such call", "status": WRONG_USE}
    try:
        return {"result": await tool_set.answer(await service.get(), name, given, tell)}
    except VectorIndexError as error:
        status = WRONG_USE if is_wrong_use(error) else 1
        return {"error": tool_set.remedies.message(error), "status": status}
    except SYSTEM_ERRORS as error:
        return {"error": sentence(error), "status": 1}
