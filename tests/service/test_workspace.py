"""Several projects searched as one: what is merged, what is limited, and what stops none of it."""

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import anyio
import pytest
from fakes import FakeEmbedder
from mcp import Client
from serving import call, codebase_of, converged, failing_call
from waiting import eventually
from writing import write

from vector_index_mcp.codebase import calls, triggering, workspace
from vector_index_mcp.codebase.workspace import Workspace, names_of, path_in
from vector_index_mcp.errors import BackgroundError
from vector_index_mcp.serving import sets
from vector_index_mcp.serving.lazily import Lazily
from vector_index_mcp.serving.server import build_server

pytestmark = pytest.mark.anyio

SHOP = {
    "src/cart.py": "class Cart:\n    def total_price(self):\n        return sum(self.prices)\n",
    "src/tax.py": "def value_added_tax(price):\n    return price * 0.19\n",
}
SITE = {
    "page/cart.ts": "export function renderCart(cart) { return cart.total_price(); }\n",
    "page/theme.css": ".dark { background: black }\n",
}
TOOL = {"tool/backoff.go": "func RetryBackoff(tries int) int { return 1 << tries }\n"}


async def tell(_):
    """Nobody listens."""


class Services:
    """The running services of some projects, and those that do not answer."""

    def __init__(self, codebases):
        self.codebases = codebases
        self.errors = {}
        self.silent = set()
        self.asked = []

    async def ask(self, project, name, given):
        self.asked.append((project.name, name))
        if project.name in self.silent:
            await anyio.sleep_forever()
        if project.name in self.errors:
            raise self.errors[project.name]
        return await calls.answer(self.codebases[project.name], name, given, tell)


@asynccontextmanager
async def running(folder):
    codebases = {}
    async with AsyncExitStack() as stack:
        for name, files in {"shop": SHOP, "site": SITE, "tool": TOOL}.items():
            root = folder / name / name
            root.mkdir(parents=True)
            codebases[name] = codebase = codebase_of(write(root, files), FakeEmbedder())
            await stack.enter_async_context(codebase.running())
        for codebase in codebases.values():

            async def is_complete(codebase=codebase):
                now = await codebase.index.status()
                return now.chunks and now.embedded == now.chunks and not now.progress.is_busy

            await eventually(is_complete)
        yield Services(codebases)


@pytest.fixture
async def services(tmp_path):
    async with running(tmp_path) as services:
        yield services


@pytest.fixture
async def client(services):
    async with served(services) as client:
        yield client


@pytest.fixture(scope="module")
async def kept(tmp_path_factory):
    """Services of projects that the tests leave alone."""
    async with running(tmp_path_factory.mktemp("kept")) as services:
        yield services


@pytest.fixture(scope="module")
async def reader(kept):
    """A client of these."""
    async with served(kept) as client:
        yield client


@asynccontextmanager
async def served(services):
    projects = [codebase.root for codebase in services.codebases.values()]
    workspace = Workspace(projects, services.ask)
    tool_set = sets.of_workspace(workspace)

    async def load():
        return workspace

    service = Lazily(load)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(service.run)
        async with Client(build_server(tool_set, service)) as client:
            yield client
        tasks.cancel_scope.cancel()


async def found(client, query, **arguments):
    return (await call(client, "search_index", query=query, **arguments))["results"]


def root_of(services, name):
    return services.codebases[name].root


async def test_the_best_of_all_come_first_with_paths_that_can_be_opened(reader, kept):
    hits = await found(reader, "total_price of a cart")
    paths = [hit["file_path"] for hit in hits]
    assert set(paths[:2]) == {
        str(root_of(kept, "shop") / "src/cart.py"),
        str(root_of(kept, "site") / "page/cart.ts"),
    }
    assert {await anyio.Path(path).is_file() for path in paths} == {True}
    scores = [hit["score"] for hit in hits]
    assert scores == sorted(scores, reverse=True)


async def test_each_project_can_be_searched_alone(reader, kept):
    for wanted in ("site", str(root_of(kept, "site"))):
        [best, *others] = await found(reader, "total_price of a cart", project=wanted)
        assert best["file_path"].endswith("/page/cart.ts")
        assert all(Path(hit["file_path"]).parts[-3] == "site" for hit in others)
    said = await failing_call(reader, "search_index", query="cart", project="shops")
    assert said == "there is no project 'shops' here; there are shop, site, tool"


async def test_of_a_miss_few_lines_are_shown_if_nothing_else_is_asked(client, services):
    steps = "".join(f"    step_{n}()\n" for n in range(40))
    write(root_of(services, "shop"), {"src/wall.py": f"def paint_wall():\n{steps}"})

    async def is_found():
        hits = await found(client, "paint_wall")
        return hits[0]["file_path"].endswith("wall.py") and "is_cut" not in hits[0]

    await eventually(is_found)
    of_miss = partial(found, client, "zebra_crossing_xyz", path="src/wall.py")
    [hit] = await eventually(of_miss)  # by meaning alone, once there are vectors
    assert hit["is_cut"]
    [hit] = await found(client, "zebra_crossing_xyz", path="src/wall.py", detail="full")
    assert "is_cut" not in hit


async def test_a_path_limits_as_results_show_it_or_in_every_project(reader, kept):
    shop = root_of(kept, "shop")
    for path in (str(shop), f"{shop}/src", f"{shop}/**/*.py", f"{shop}/src/cart.py"):
        paths = {hit["file_path"] for hit in await found(reader, "total_price", path=path)}
        assert paths and all(found.startswith(f"{shop}/") for found in paths)
    [hit] = await found(reader, "total_price", path="page/cart.ts")
    assert hit["file_path"].endswith("site/page/cart.ts")
    everywhere = await found(reader, "total_price", path=str(shop.parent.parent))
    assert len({Path(hit["file_path"]).parts[-3] for hit in everywhere}) > 1
    said = await failing_call(reader, "search_index", query="cart", path="/nowhere/at/all")
    assert "lies in none of the projects" in said


async def test_a_path_may_begin_with_the_name_of_a_project(reader, kept):
    shop = root_of(kept, "shop")
    hits = await found(reader, "price", path="shop/src")
    assert {hit["file_path"] for hit in hits} == {str(shop / path) for path in SHOP}
    hits = await found(reader, "price", path="shop/*/tax.py")
    assert [hit["file_path"] for hit in hits] == [str(shop / "src/tax.py")]
    sample = await found(reader, "prices", similar_to="shop/src/cart.py:1")
    assert sample


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("shop/src", "src"),
        ("shop/src/**", "src/**"),
        ("shop/src/cart.py:7", "src/cart.py:7"),
        ("shop/shop", "shop"),
        ("shop/shop/cart.py", "shop/cart.py"),
        ("shop/shop/*.py", "shop/*.py"),
        ("shop/cart.py", "shop/cart.py"),
        ("shop/cart.py:7-9", "shop/cart.py:7-9"),
        ("shop/*.py", "shop/*.py"),
        ("shop/docs/nowhere", "shop/docs/nowhere"),
        ("shopping", "shopping"),
    ],
)
def test_a_project_may_contain_a_folder_of_its_own_name(tmp_path, path, meant):
    write(tmp_path, {"shop/cart.py": "", "src/cart.py": ""})
    assert path_in(tmp_path, path, "shop") == meant


async def test_a_folder_that_is_called_like_another_project_is_searched_as_well(client, services):
    site, shop = root_of(services, "site"), root_of(services, "shop")
    write(site, {"shop/src/till.py": "def price_of_till(): pass\n"})
    wanted = {str(site / "shop/src/till.py"), *(str(shop / path) for path in SHOP)}

    async def are_all_found():
        return {hit["file_path"] for hit in await found(client, "price", path="shop/src")} == wanted

    await eventually(are_all_found)


async def test_what_stands_in_one_project_is_missing_in_none(reader):
    answer = await call(reader, "search_index", query="RetryBackoff")
    assert "absent" not in answer
    assert answer["results"][0]["file_path"].endswith("tool/backoff.go")
    assert (await call(reader, "search_index", query="zebra_crossing"))["absent"] == [
        "zebra_crossing"
    ]
    note = (await call(reader, "search_index", query="where is the zebra crossing"))["note"]
    assert note.count("No searched file contains") == 1


async def test_of_an_expression_what_matches_in_one_project_is_shown_alone(reader, kept):
    answer = await call(reader, "search_index", query=r"def total_\w+")
    [hit] = answer["results"]
    assert hit["file_path"] == f"{kept.codebases['shop'].root.as_posix()}/src/cart.py"
    assert "shop: 1 chunk matches the query as a regular expression." in answer["note"]
    nothing = await call(reader, "search_index", query="total_[0-9]+", regex=True)
    assert nothing["results"] == []
    assert "No chunk matches" in nothing["note"]


async def test_what_one_project_has_as_text_is_an_expression_in_none(client, services):
    write(root_of(services, "site"), {"page/stream.ts": "const price$ = of(1);\n"})
    write(root_of(services, "shop"), {"src/words.txt": "the last price\n"})
    await call(client, "trigger_index")
    for name in ("site", "shop"):
        await converged(services.codebases[name])
    hits = await found(client, "price$")
    assert hits[0]["file_path"].endswith("site/page/stream.ts")
    assert not any(hit["file_path"].endswith("words.txt") for hit in hits)


async def test_a_mistyped_name_shows_what_it_finds_in_the_project_that_has_the_name(reader):
    answer = await call(reader, "search_index", query="RetryBakoff")
    note = "No searched file contains `RetryBakoff`; these are results for `RetryBackoff`."
    assert answer["note"].startswith(note)
    assert {hit["file_path"].split("/")[-1] for hit in answer["results"]} == {"backoff.go"}


async def test_a_project_that_has_no_such_file_does_not_hide_that_a_name_stands_nowhere(reader):
    answer = await call(reader, "search_index", query="RetryBackoff", language="typescript")
    assert answer["note"].startswith("No searched file contains `RetryBackoff`")
    answer = await call(reader, "search_index", query="RetryBackoff", language="haskell")
    assert "No searched file" not in answer["note"]


async def test_what_stands_in_one_project_is_spelled_otherwise_in_none(client, services):
    write(root_of(services, "shop"), {"typo.py": "RetryBakoff = 1\n"})
    await call(client, "trigger_index")
    await converged(services.codebases["shop"])
    answer = await call(client, "search_index", query="RetryBakoff")
    assert "absent" not in answer
    assert answer["results"][0]["file_path"].endswith("shop/typo.py")
    assert not any(hit["file_path"].endswith("backoff.go") for hit in answer["results"])


async def test_a_path_that_one_project_has_is_unknown_in_none(reader, kept):
    path = "page/theme.css"
    answer = await call(reader, "search_index", query=path)
    assert answer["results"][0]["file_path"] == f"{root_of(kept, 'site')}/{path}"
    assert "No file is called" not in (answer["note"] or "")
    nowhere = await call(reader, "search_index", query="page/zebra.css")
    assert nowhere["note"] == "No file is called 'page/zebra.css'."
    mistyped = await call(reader, "search_index", query="page/thme.css")
    said = f"No file is called 'page/thme.css'; the first result is '{path}'."
    assert mistyped["note"] == said


async def test_a_file_that_one_project_has_comes_before_what_others_have_like_it(client, services):
    write(root_of(services, "shop"), {"page/themes.css": "a { color: red }\n"})
    await call(client, "trigger_index")
    await converged(services.codebases["shop"])
    answer = await call(client, "search_index", query="page/theme.css")
    paths = [hit["file_path"] for hit in answer["results"]]
    assert paths[0] == f"{root_of(services, 'site')}/page/theme.css"
    assert not any(path.endswith("themes.css") for path in paths)


async def test_code_like_a_sample_is_found_in_the_other_projects(reader, kept):
    sample = f"{root_of(kept, 'shop')}/src/cart.py:2"
    paths = [hit["file_path"] for hit in await found(reader, "", similar_to=sample)]
    assert paths[0].endswith("site/page/cart.ts")
    assert not any(path.endswith("shop/src/cart.py") for path in paths)
    about = "price " * 160  # nearly as long as an expression may be
    narrowed = await found(reader, about, similar_to=sample)
    assert await found(reader, about, similar_to=sample, regex=True) == narrowed
    said = await failing_call(reader, "search_index", query="", similar_to="/etc/hosts:1")
    assert "similar_to names no indexed line of a project here" in said


async def test_it_is_compared_by_its_vector_in_every_project_of_the_same_model(client, services):
    """As a question, its text would be ranked by other rules, and its scores compare with none."""
    twin = {"twin/cart.py": SHOP["src/cart.py"].replace("def ", "async def ")}
    write(root_of(services, "tool"), twin)
    await call(client, "trigger_index")
    sample = f"{root_of(services, 'shop')}/src/cart.py:2"
    hits = await found(client, "", similar_to=sample, verbose=True)
    assert hits[0]["file_path"].endswith("tool/twin/cart.py")
    cosine = hits[0]["score"]
    assert cosine > 0.8
    other = services.codebases["tool"].index.indexer.live.index
    other.manifest = replace(other.manifest, model=replace(other.manifest.model, digest="other"))
    hits = await found(client, "", similar_to=sample, verbose=True)  # as a text then
    [twin] = [hit for hit in hits if hit["file_path"].endswith("tool/twin/cart.py")]
    assert twin["score"] != cosine


async def test_a_sample_is_no_hit_of_the_project_that_lies_around_its_own(client, services):
    site = root_of(services, "site")
    write(site / "shop", SHOP)
    inner = codebase_of(site / "shop", FakeEmbedder())
    async with inner.running():
        services.codebases = {"site": services.codebases["site"], "shop": inner}
        async with served(services) as both:
            await call(both, "trigger_index")
            sample = site / "shop/src/cart.py"
            for similar_to in (f"{sample}:2", "shop/src/cart.py:2"):
                paths = [hit["file_path"] for hit in await found(both, "", similar_to=similar_to)]
                assert paths[0] == str(site / "page/cart.ts")
                assert str(sample) not in paths
                assert str(site / "shop/src/tax.py") in paths


@pytest.mark.parametrize("argument", ["path", "similar_to"])
async def test_what_no_path_can_be_is_refused_in_a_sentence(reader, argument):
    given = {argument: "/nowhere\0:1"}
    said = await failing_call(reader, "search_index", query="cart", **given)
    assert argument in said and "\\x00" in said


async def test_names_that_a_terminal_would_obey_are_made_visible(client, services):
    root = services.codebases.pop("tool").root
    evil = root.rename(root.parent / "to\nol\x1b[31m")
    services.errors[evil.name] = BackgroundError("no")
    services.codebases[evil.name] = codebase_of(evil, FakeEmbedder())
    async with served(services) as other:
        answer = await call(other, "search_index", query="total_price")
        assert r"to\nol\x1b[31m could not be searched: no." in answer["note"]
        said = await failing_call(other, "search_index", query="cart", project="x")
        assert said.endswith(r"there are shop, site, to\nol\x1b[31m")


async def test_offset_goes_on_where_the_last_answer_ended(reader):
    every = await found(reader, "total_price cart tax dark", top_k=50)
    pages = [
        await found(reader, "total_price cart tax dark", top_k=2, offset=offset)
        for offset in range(0, len(every), 2)
    ]
    assert [hit["file_path"] for page in pages for hit in page] == [h["file_path"] for h in every]


@pytest.mark.long
async def test_all_of_the_answer_keeps_to_the_budget(client, services):
    for name in ("shop", "site", "tool"):
        text = "".join(f"total_price_{number} = {number}\n" for number in range(300))
        (root_of(services, name) / "long.py").write_text(text)
        await call(client, "trigger_index")
    answer = await call(client, "search_index", query="total_price", top_k=20, max_tokens=500)
    assert sum(len(str(hit)) for hit in answer["results"]) < 500 * 3 * 1.3
    assert "Texts were shortened to fit max_tokens" in answer["note"]


async def test_a_project_that_fails_stops_no_other(client, services):
    services.errors["tool"] = BackgroundError("it was killed")
    answer = await call(client, "search_index", query="total_price")
    assert len({hit["file_path"] for hit in answer["results"]}) >= 2
    assert "tool could not be searched: it was killed." in answer["note"]
    projects = (await call(client, "get_status"))["projects"]
    assert [project.get("error_message") for project in projects] == [None, None, "it was killed"]
    for name in ("shop", "site"):
        services.errors[name] = BackgroundError("so was it")
    said = await failing_call(client, "search_index", query="total_price")
    assert "shop could not be searched: so was it" in said


async def test_a_project_that_does_not_answer_is_not_waited_for(client, services, monkeypatch):
    monkeypatch.setattr(workspace, "_PATIENCE_SECONDS", 3.0)  # enough for the others
    services.silent.add("site")
    answer = await call(client, "search_index", query="total_price")
    assert answer["results"][0]["file_path"].endswith("src/cart.py")
    assert "site could not be searched: no answer within" in answer["note"]


@pytest.mark.long
@pytest.mark.parametrize("patience", [None, 3.0])
async def test_a_sample_is_found_although_the_first_project_fails(
    client, services, monkeypatch, patience
):
    """With an error at once, or by its silence, which is waited for once."""
    error = "it was killed"
    if patience is None:
        services.errors["shop"] = BackgroundError(error)
    else:
        monkeypatch.setattr(workspace, "_PATIENCE_SECONDS", patience)
        services.silent.add("shop")
        error = "no answer within"
    answer = await call(client, "search_index", query="", similar_to="page/cart.ts:1")
    assert f"shop could not be searched: {error}" in answer["note"]
    assert not any("/shop/" in hit["file_path"] for hit in answer["results"])
    assert [name for name, _ in services.asked].count("shop") == 1
    said = await failing_call(client, "search_index", query="", similar_to="gone.ts:1")
    assert "similar_to='gone.ts:1' was not found. shop could not be searched" in said


async def test_a_sample_of_the_first_project_waits_for_no_other(client, services):
    services.silent |= {"site", "tool"}
    with anyio.fail_after(5):
        answer = await call(
            client, "search_index", query="", similar_to="src/cart.py:2", project="shop"
        )
    assert answer["results"][0]["file_path"].endswith("shop/src/tax.py")
    assert answer["note"] is None


async def test_a_relative_sample_is_that_of_the_first_project_that_has_it(client, services):
    write(root_of(services, "tool"), {"page/cart.ts": "export const wheels = 4;\n"})
    await call(client, "trigger_index")
    hits = await found(client, "", similar_to="page/cart.ts:1")
    assert hits[0]["file_path"].endswith("shop/src/cart.py")
    assert not any(hit["file_path"].endswith("site/page/cart.ts") for hit in hits)


async def test_one_that_refuses_the_question_is_passed_over_unless_all_do(reader):
    said = await failing_call(reader, "search_index", query="??? !!!")
    assert "the query has no word" in said


async def test_every_index_is_brought_up_to_date(client, services):
    (root_of(services, "tool") / "new.py").write_text("def fresh_paint(): pass\n")
    projects = (await call(client, "trigger_index", force_reindex=True))["projects"]
    assert [project["complete"] for project in projects] == [True] * 3
    assert [project["indexed_file_count"] for project in projects] == [2, 2, 2]
    assert {name for name, asked in services.asked if asked == "trigger"} == {
        "shop",
        "site",
        "tool",
    }


async def test_tools_say_what_they_search(client, services):
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == ["search_index", "get_status", "trigger_index"]
    assert "project" in tools["search_index"].input_schema["properties"]
    assert str(root_of(services, "site")) in client.instructions


def test_projects_of_one_name_are_told_apart():
    one, two = Path("/home/ada/web/api"), Path("/home/bob/api")
    assert names_of([one, two]) == {"web/api": one, "bob/api": two}
    below = Path("/api")
    assert names_of([one, below, one]) == {"web/api": one, "/api": below}


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("", ""),
        ("src", "src"),
        ("*.py", "*.py"),
        ("/w/shop", ""),
        ("/w/shop/", ""),
        ("/w", ""),
        ("/", ""),
        ("/w/shop/src/**", "src/**"),
        ("/w/shopping", None),
        ("/w/site/src", None),
    ],
)
def test_a_path_means_the_same_as_in_one_project(path, meant):
    assert path_in(Path("/w/shop"), path) == meant


SAME_NAME = [Path(f"/w/{folder}/app") for folder in ("one", "two", "x/deep", "y/deep")]


async def searched(wanted, projects):
    """The projects that are searched."""
    asked = set()

    async def ask(project, *_):
        asked.add(project)
        return {"results": [], "mode": "hybrid"}

    question = workspace.WorkspaceArguments(query="x", project=wanted)
    await Workspace(projects, ask).search(question)
    return asked


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("one/app", "one"),
        ("w/one/app/", "one"),
        ("/w/one/app", "one"),
        ("two/app", "two"),
        ("w/two/app/", "two"),
        ("x/deep/app", "x/deep"),
        ("y/deep/app", "y/deep"),
    ],
)
async def test_a_name_or_an_end_of_a_path_means_one_project(wanted, meant):
    assert await searched(wanted, SAME_NAME) == {Path(f"/w/{meant}/app")}


async def test_an_end_of_several_paths_is_refused_with_the_choices():
    projects = [Path(f"/{root}/w/deep/app") for root in "ab"]
    with pytest.raises(workspace.QueryError) as refused:
        await searched("w/deep/app", projects)
    choices = "a/w/deep/app (/a/w/deep/app), b/w/deep/app (/b/w/deep/app)"
    assert str(refused.value) == f"project='w/deep/app' means several: {choices}; name one of them"
    with pytest.raises(workspace.QueryError, match="project='app' means several: one/app "):
        await searched("app", SAME_NAME)


async def test_of_the_projects_that_there_are_the_nearest_is_named_first():
    with pytest.raises(
        workspace.QueryError, match=r"no project 'tow/app' here; there are two/app, "
    ):
        await searched("tow/app", SAME_NAME)


async def test_an_index_that_lacks_vectors_is_not_complete(client, services, monkeypatch):
    monkeypatch.setattr(triggering, "PATIENCE_SECONDS", 0.5)
    services.codebases["tool"].index.embedder.hold()
    (root_of(services, "tool") / "new.py").write_text("def fresh_paint(): pass\n")

    async def embeds():
        projects = (await call(client, "trigger_index"))["projects"]
        assert [project["complete"] for project in projects] == [True, True, False]
        return projects[2]["message"] == (
            "All text is indexed and can be found by words. Embedding goes on in the background."
        )

    assert await eventually(embeds)
    services.codebases["tool"].index.embedder.release()
