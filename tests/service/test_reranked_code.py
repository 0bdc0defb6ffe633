"""A cross-encoder has a say in the order of code, if somebody asks in words and it is in time."""

import anyio
import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, serving, settled
from writing import write

pytestmark = pytest.mark.anyio

QUESTION = "how is the delay before another attempt computed"
FILES = {
    f"src/part_{n}.py": f"# {QUESTION}\ndef attempt_{n}():\n    return {'delay * ' * n}1\n"
    for n in range(8)
}


class Judge(FakeEmbedder):
    """It has a cross-encoder, which likes texts that hold `favourite`."""

    has_reranker = True
    reranker_state = "ready"
    favourite = ""

    def __init__(self):
        super().__init__()
        self.judged = []

    async def scores(self, query, texts, seconds=None):
        self.judged.append((query, list(texts), seconds))
        return [float(self.favourite in text) for text in texts]


@pytest.fixture
def project(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, FILES)
    return root


@pytest.fixture
def judge():
    return Judge()


@pytest.fixture
async def client(project, judge):
    async with serving(codebase_of(project, judge, rerank_seconds=9.0)) as client:
        await settled(client)
        yield client


async def asked(client, query=QUESTION, **arguments):
    given = {"query": query, "top_k": 8} | arguments
    answer = await call(client, "search_index", **given)
    return [hit["file_path"] for hit in answer["results"]], answer


async def plainly(client, judge, **arguments):
    """What is found, in the order that it has for itself."""
    judge.has_reranker = False
    try:
        return (await asked(client, **arguments))[0]
    finally:
        judge.has_reranker = True


async def test_what_it_prefers_comes_earlier_and_scores_still_fall(client, judge):
    plain = await plainly(client, judge)
    assert len(plain) == 8
    judge.favourite = plain[2].rpartition("/")[2]
    paths, answer = await asked(client)
    assert paths == [plain[0], plain[2], plain[1], *plain[3:]]
    scores = [hit["score"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    assert answer["note"] is None
    [(query, texts, seconds)] = judge.judged
    assert (query, len(texts), seconds) == (QUESTION, 8, 9.0)
    assert all(text.startswith("part_") for text in texts)  # with their place, as they are embedded


async def test_what_lies_beyond_the_answer_can_come_into_it(client, judge):
    plain = await plainly(client, judge)
    judge.favourite = plain[2].rpartition("/")[2]
    assert plain[2] in (await asked(client, top_k=2))[0]
    pages = [(await asked(client, top_k=2, offset=offset))[0] for offset in (0, 2, 4, 6)]
    assert sum(pages, []) == (await asked(client))[0]


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("what is this project for", "README.md"),
        ("how do I run the tests", "CONTRIBUTING.md"),
    ],
)
async def test_what_leads_is_not_judged_and_stays_first(client, project, judge, query, first):
    readme = "# Attempts\n\nComputes delays and tries again.\n"
    guide = "# Running the tests\n\nRun `pytest`.\n"
    write(project, {"README.md": readme, "CONTRIBUTING.md": guide})
    await settled(client)
    plain = await plainly(client, judge, query=query, top_k=10)
    assert plain[0] == first
    others = plain[1:]
    judge.favourite = others[2].rpartition("/")[2]
    paths, answer = await asked(client, query, top_k=10)
    assert paths == [first, others[0], others[2], others[1], *others[3:]]
    scores = [hit["score"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)
    [(_, texts, _)] = judge.judged
    assert len(texts) == 9


@pytest.mark.parametrize(
    "given",
    [
        {"query": "attempt_3"},
        {"query": "src/part_3.py"},
        {"query": 'what says "return delay" here'},
        {"query": "", "similar_to": "src/part_3.py:1"},
        {"query": QUESTION, "similar_to": "src/part_3.py:1"},
    ],
    ids=["identifier", "path", "quotation", "sample", "sample-and-words"],
)
async def test_nobody_asks_it_for_what_is_named(client, judge, given):
    plain = await plainly(client, judge, **given)
    judge.favourite = plain[-1].rpartition("/")[2]
    assert (await asked(client, **given))[0] == plain
    assert judge.judged == []


async def test_while_it_is_loaded_an_answer_comes_without_it_and_says_so(client, judge):
    plain = await plainly(client, judge)
    judge.favourite, judge.reranker_state = plain[2].rpartition("/")[2], "off"
    paths, answer = await asked(client)
    assert paths == plain
    assert answer["note"] == "Ranked without the cross-encoder: it is still loading."
    assert judge.reranker_state == "loading"  # begun
    assert judge.judged == []
    judge.reranker_state = "ready"
    assert (await asked(client))[0] != plain


async def test_one_that_cannot_be_loaded_is_told_with_its_reason(client, judge):
    judge.reranker_state, judge.reranker_reason = "unavailable", "there is no such model"
    _, answer = await asked(client)
    assert answer["note"] == (
        "Ranked without the cross-encoder: there is no such model; check VECTOR_INDEX_RERANK_MODEL."
    )
    assert judge.judged == []


async def test_one_that_does_not_end_is_not_waited_for(project, judge, monkeypatch):
    async def never(query, texts, seconds=None):
        await anyio.sleep_forever()

    async with serving(codebase_of(project, judge, rerank_seconds=0.05)) as client:
        await settled(client)
        plain = await plainly(client, judge)
        monkeypatch.setattr(judge, "scores", never)
        paths, answer = await asked(client)
    assert paths == plain
    assert answer["note"].endswith("without the cross-encoder: it took longer than 0.05 s.")
