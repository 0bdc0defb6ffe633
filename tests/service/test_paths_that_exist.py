"""A path that exists is that path, whatever its names are made of; only another one is a glob."""

import shutil
import unicodedata

import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, failing_call, found, serving, settled
from writing import write

pytestmark = pytest.mark.anyio

ODD = [
    "pages/[id].tsx",
    "pages/[...slug].tsx",
    "pages/[[opt]].ts",
    "src/{a}.py",
    "src/{a,b}.py",
    "tpl/{{name}}/a.py",
    "routes/(group)/+page.svelte",
    "routes/@modal/$id.ts",
    "app/[lang]/page.tsx",
    "app/[lang]/deep/[id]/page.tsx",
    "st*r.py",
    "wh?t.py",
    "**",
    "!bang.py",
    "#hash.py",
    "sp ace.py",
    " before.py",
    "after.py ",
    "back\\slash.py",
    'it\'s, "odd".py',
    "[z-a].py",
    "[",
    "{,}.py",
    "a{b.py",
    "50%_off.py",
    "new\nline.py",
    unicodedata.normalize("NFD", "déjà/vû.py"),
]
# What the names above would match as globs.
DECOYS = [
    "pages/i.tsx",
    "pages/s.tsx",
    "pages/o.ts",
    "src/a.py",
    "src/b.py",
    "tpl/name/a.py",
    "app/l/page.tsx",
    "star.py",
    "what.py",
    "bang.py",
    "hash.py",
    "back/slash.py",
    "nested/sp ace.py",
]


@pytest.fixture(scope="module")
def anyio_backend():
    return "asyncio"


@pytest.fixture(scope="module")
async def project(tmp_path_factory):
    root = tmp_path_factory.mktemp("odd") / "project"
    root.mkdir()
    write(root, {key: f"cookie = {number}\n" for number, key in enumerate(ODD + DECOYS)})
    (root / ".gitignore").write_text("ignored.py\n", encoding="utf-8")
    (root / "ignored.py").write_text("cookie = 0\n", encoding="utf-8")
    (root / "binary.py").write_bytes(b"cookie\0\0\0")
    return root


@pytest.fixture(scope="module")
async def client(project):
    async with serving(codebase_of(project, FakeEmbedder())) as client:
        await settled(client)
        yield client


async def files(client, path):
    return sorted(await found(client, "cookie", path=path, top_k=100, max_tokens=100_000))


@pytest.mark.parametrize("key", ODD)
async def test_the_name_of_a_file_is_that_file(client, project, key):
    uri = (project / key).as_uri()
    for path in (key, f"./{key}", f"{project}/{key}", f"/{key}", uri, f"{uri}#L1"):
        assert await files(client, path) == [key]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("pages\\[id].tsx", "pages/[id].tsx"),
        ("pages/\\[id\\].tsx", "pages/[id].tsx"),
        ("pages/\\[...slug\\].tsx", "pages/[...slug].tsx"),
        ("sp\\ ace.py", "sp ace.py"),
        ("  sp ace.py\n", "sp ace.py"),
        ("src/../st*r.py", "st*r.py"),
        ("src//a.py", "src/a.py"),
        ("src/a.py:12-20", "src/a.py"),
        ("`src/{a}.py#L3`", "src/{a}.py"),
        ("déjà/vû.py", ODD[-1]),
        ("back\\\\slash.py", "back/slash.py"),
    ],
)
async def test_a_file_may_be_written_as_elsewhere(client, path, key):
    assert await files(client, path) == [key]


@pytest.mark.parametrize(
    "folder", ["pages", "app/[lang]", "tpl/{{name}}", "routes/(group)", "routes", "déjà", "app"]
)
async def test_the_name_of_a_folder_is_all_that_lies_in_it(client, project, folder):
    on_disk = unicodedata.normalize("NFD", folder)
    expected = sorted(key for key in ODD + DECOYS if key.startswith(f"{on_disk}/"))
    assert expected
    for path in (folder, f"{folder}/", f"./{folder}", f"{project}/{folder}", f"/{folder}/"):
        assert await files(client, path) == expected


@pytest.mark.parametrize("path", [".", "./", "/", " "])
async def test_the_project_itself_limits_nothing(client, project, path):
    everything = await files(client, "")
    assert set(ODD + DECOYS) <= set(everything)
    assert await files(client, path) == everything == await files(client, f"{project}/")


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("app/[lang]/**/*.tsx", ["app/[lang]/deep/[id]/page.tsx", "app/[lang]/page.tsx"]),
        ("app/[lang]/**/*.{ts,tsx}", ["app/[lang]/deep/[id]/page.tsx", "app/[lang]/page.tsx"]),
        ("app/\\[lang\\]/*.tsx", ["app/[lang]/page.tsx"]),
        ("**/[id]/*.tsx", ["app/[lang]/deep/[id]/page.tsx"]),
        ("[id].*", ["pages/[id].tsx"]),
        ("pages/[[]*", ["pages/[...slug].tsx", "pages/[[opt]].ts", "pages/[id].tsx"]),
        ("tpl/{{name}}/*.py", ["tpl/{{name}}/a.py"]),
        ("pages/[a-z].tsx", ["pages/i.tsx", "pages/s.tsx"]),
        ("pages/[io].{ts,tsx}", ["pages/i.tsx", "pages/o.ts"]),
        ("sta?.py", ["star.py"]),
        ("app/*/page.tsx", ["app/[lang]/page.tsx", "app/l/page.tsx"]),
        ("slash.py", ["back/slash.py"]),
        ("déjà/*.py", [ODD[-1]]),
    ],
)
async def test_a_glob_is_read_so_that_it_matches_what_exists(client, glob, expected):
    assert await files(client, glob) == expected


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"path": "srcc/**"}, "No indexed file matches path='srcc/**'."),
        ({"path": "/srcc"}, "No indexed file matches path='/srcc'."),
        (
            {"path": "ignored.py"},
            "'ignored.py' is not indexed: it is ignored, by an ignore file such as .gitignore",
        ),
        ({"path": "binary.py"}, "'binary.py' is not indexed: binary"),
        ({"language": "go"}, "No indexed files are in the language asked for."),
        (
            {"language": "go", "path": "src"},
            "No indexed files that match path='src' are in the language asked for.",
        ),
    ],
)
async def test_what_cannot_be_found_is_told(client, arguments, told):
    answer = await call(client, "search_index", query="cookie", **arguments)
    assert answer["results"] == []
    assert answer["note"].startswith(told)


@pytest.mark.parametrize(
    "path", ["/etc", "/etc/passwd", "/etc/no-such-file", "../other", "..\\other", "src/../../**"]
)
async def test_a_path_that_leads_out_of_the_project_is_told(client, project, path):
    said = await failing_call(client, "search_index", query="cookie", path=path)
    assert said == f"path={path!r} lies outside of the project, {project}"


async def test_another_way_into_the_project_does_not_lead_out_of_it(client, project, tmp_path):
    (tmp_path / "way").symlink_to(project)
    answer = await call(client, "search_index", query="cookie", path=f"{tmp_path}/way/srcc")
    assert answer["note"].startswith("No indexed file matches")


async def test_what_could_have_been_found_is_not_blamed_on_the_path(client):
    assert (await call(client, "search_index", query="cookie", path="src"))["note"] is None


@pytest.mark.parametrize("path", ["x" * 5_000, "*" * 101, "a?" * 200, "\udcff", "a\0b", "{a}" * 90])
async def test_a_path_that_can_be_none_is_answered_or_refused_with_a_sentence(client, path):
    result = await client.call_tool("search_index", {"query": "cookie", "path": path})
    text = result.content[0].text
    assert len(text) < 1_000
    assert result.is_error == ("path must be a text of at most 4,096" in text or "glob" in text)


async def test_a_folder_that_is_out_of_reach_is_still_that_folder(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    write(root, {"app/[lang]/page.tsx": "cookie = 1\n", "app/l/page.tsx": "cookie = 2\n"})
    codebase = codebase_of(root, FakeEmbedder(), quiet_seconds=60.0, longest_seconds=60.0)
    async with serving(codebase) as client:
        await settled(client)
        shutil.rmtree(root / "app")
        answer = await call(client, "search_index", query="cookie", path="app/[lang]")
        assert (
            "No indexed file" not in answer["note"]
        )  # it is gone from the disk, not from the index


async def test_names_of_the_same_look_are_both_found(tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    both = [unicodedata.normalize(form, "é.py") for form in ("NFC", "NFD")]
    write(root, dict.fromkeys(both, "cookie = 1\n"))
    async with serving(codebase_of(root, FakeEmbedder())) as client:
        await settled(client)
        for key in both:
            assert await files(client, key) == [key]
        assert "glob" in await failing_call(client, "search_index", query="cookie", path="[z-a]")
