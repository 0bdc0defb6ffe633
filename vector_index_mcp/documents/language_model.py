"""A language model that the user runs: it rewords queries and scores the passages they find.

It is optional. If it fails or takes too long, the query is answered without it. Any server with
OpenAI's `POST /chat/completions` works, such as llama.cpp, Ollama, LM Studio or vLLM on the same
machine.
"""

import json
import logging
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vector_index_mcp.engine.models.openai_api import OpenAiApi
from vector_index_mcp.errors import ServerError

_log = logging.getLogger(__name__)

_MOST_VARIANTS = 4
_LONGEST_VARIANT_CHARS = 300
_LONGEST_PASSAGE_CHARS = 800
_LARGEST_ANSWER_BYTES = 1_000_000
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s*")
_SCORES = re.compile(r"\[[^\[\]]*\]")
_HIGHEST_GRADE = 10
_FAILURES = (ValueError, KeyError, IndexError, OverflowError, TypeError, RecursionError)

_EXPAND = (
    "You help to search a collection of documents. Write {count} other ways to word the query "
    "below: synonyms, the words that a document answering it would use, a sentence such a document "
    "might hold. One per line, without numbers or comments.\n\nQuery: {query}"
)
_JUDGE = (
    "How well does each passage answer the query? Give each a whole number from 0 (not at all) to "
    "{highest} (fully). Answer with a JSON list of {count} numbers in the order of the passages, "
    "and nothing else.\n\nQuery: {query}\n\n{passages}"
)


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """The server of the language model."""

    url: str
    """The address up to and including `/v1`."""
    name: str
    """The name of the model; empty if the server needs none."""
    key: str
    """The bearer token; empty for none."""
    seconds: float
    """The longest wait for the answers to one query, together."""

    async def variants(self, query: str, seconds: float) -> list[str]:
        """Return other wordings of `query`; none if the model fails or takes longer than this."""
        answer = await self._answer(_EXPAND.format(count=_MOST_VARIANTS, query=query), seconds)
        lines = (_BULLET.sub("", line).strip(" \t\"'`") for line in answer.split("\n"))
        found = dict.fromkeys(line[:_LONGEST_VARIANT_CHARS] for line in lines if line)
        found.pop(query, None)
        return [*found][:_MOST_VARIANTS]

    async def scores(
        self, query: str, passages: Sequence[str], seconds: float
    ) -> list[float] | None:
        """Return how well each passage answers `query`, 0 to 1.

        None if the answer is invalid, or takes longer than this many seconds.
        """
        listed = "\n\n".join(
            f"Passage {number}:\n{text[:_LONGEST_PASSAGE_CHARS]}"
            for number, text in enumerate(passages, 1)
        )
        answer = await self._answer(
            _JUDGE.format(
                highest=_HIGHEST_GRADE, count=len(passages), query=query, passages=listed
            ),
            seconds,
        )
        match = _SCORES.search(answer)
        try:
            grades = [float(grade) for grade in json.loads(match[0])] if match else []
        except _FAILURES:
            return None
        if len(grades) != len(passages) or not all(map(math.isfinite, grades)):
            return None
        return [min(max(grade / _HIGHEST_GRADE, 0.0), 1.0) for grade in grades]

    async def _answer(self, prompt: str, seconds: float) -> str:
        """Return the model's answer; empty if it fails, or there is no time left for it."""
        if seconds <= 0:
            return ""
        body: dict[str, Any] = {
            "messages": [{"role": "user", "content": prompt}],
            "temperature": 0,
            "stream": False,
        }
        if self.name:
            body["model"] = self.name
        api = OpenAiApi(self.url, self.key, is_local=False)  # proxies of the environment are used
        try:
            async with api.open():
                found = await api.post(
                    "chat/completions",
                    body,
                    most_bytes=_LARGEST_ANSWER_BYTES,
                    seconds=seconds,
                )
            return str(found["choices"][0]["message"]["content"] or "")
        except ServerError as error:
            _log.warning("the language model at %s %s", self.url, error)
        except _FAILURES:
            _log.warning("the language model at %s returned an answer without text", self.url)
        return ""
