"""A question about the project as a whole is answered with what introduces it."""

import pytest
from fakes import FakeEmbedder
from serving import call, codebase_of, converged, served
from writing import write

pytestmark = pytest.mark.anyio

QUESTION = "what is this project for"
README = "# Pears\n\nSorts fruit by weight.\n" + "".join(
    f"\n## Part {number}\n\n{'It weighs them one after the other. ' * 40}\n" for number in range(6)
)
FILES = {
    "README.md": README,
    "packages/scales/README.md": "# Scales\n\nThis project is for scales.\n",
    "src/project.py": "def what_is_this_project_for(project):\n    return project.purpose\n",
    "src/weigh.py": "def weigh(pear):\n    return pear.grams\n",
    "tests/test_weigh.py": "def test_weigh():\n    assert weigh(pear) == 1\n",
}


async def asked(client, query=QUESTION, **given):
    return await call(client, "search_index", query=query, **given)


def found(answer):
    return [hit["file_path"] for hit in answer["results"]]


async def test_the_readme_comes_first_from_its_beginning(tmp_path):
    async with served(tmp_path, FILES) as client:
        answer = await asked(client)
        first, *others = answer["results"]
        assert (first["file_path"], first["start_line"]) == ("README.md", 1)
        assert first["score"] >= max(hit["score"] for hit in others)
        assert len(first["also"]) == 3
        assert answer["note"] is None
        assert "src/project.py" in found(answer)[1:]
        places = [(hit["file_path"], hit["start_line"]) for hit in answer["results"]]
        assert len({*places}) == len(places)
        following = await asked(client, offset=1, top_k=2)
        assert following["results"] == answer["results"][1:3]
        assert len((await asked(client, top_k=1))["results"]) == 1


async def test_without_a_readme_the_description_of_a_package_comes_first(tmp_path):
    files = {name: text for name, text in FILES.items() if "README" not in name}
    files |= {"doc.go": "// Package pears sorts fruit by weight.\npackage pears\n"}
    async with served(tmp_path, files) as client:
        assert found(await asked(client))[0] == "doc.go"
    files |= {"doc.go": "// Copyright 2026 The Pears\n\npackage pears\n"}
    async with served(tmp_path / "other", files) as client:
        assert found(await asked(client))[0] == "src/project.py"
    async with served(tmp_path / "more", {"docs/README.md": README}) as client:
        assert found(await asked(client))[0] == "docs/README.md"


async def test_the_explanation_shows_why_it_is_there(tmp_path):
    write(tmp_path, FILES)
    codebase = codebase_of(tmp_path, FakeEmbedder())
    async with codebase.running():
        await converged(codebase)
        first, second, *_ = (await codebase.search(QUESTION, 5)).hits
    assert first.why.file == first.why.likelihood == {"introduction": pytest.approx(2.44, abs=0.01)}
    assert round(first.likelihood, 2) == 0.92
    assert (second.chunk.key, round(second.likelihood, 2)) == ("src/project.py", 0.08)
    assert second.why.likelihood["introduction"] < 0


BADGES = {
    "README.md": (
        '# Pears\n\n<p align="center"><img src="https://pears.example/a.svg" alt="The logo"></p>\n',
        "[![build](https://ci.example/status.svg)](https://ci.example/pears)\n",
    ),
    "README.rst": (
        "Pears\n=====\n\n",
        ".. image:: https://ci.example/status.svg\n   :target: https://ci.example/pears\n"
        "   :alt: What the build of pears says\n\n",
    ),
}


@pytest.mark.parametrize("name", BADGES)
async def test_a_beginning_of_badges_is_passed_over(tmp_path, name):
    head, badge = BADGES[name]
    write(tmp_path, {name: f"{head}{badge * 25}\nWhy\n---\n\nIt sorts fruit by its weight.\n"})
    async with served(tmp_path, {"src/weigh.py": FILES["src/weigh.py"]}) as client:
        first = (await asked(client))["results"][0]
        assert "It sorts fruit by its weight." in first["extracted_text_chunk"]
        assert first["start_line"] > 1


async def test_what_is_limited_to_other_files_or_asks_for_more_is_searched_for(tmp_path):
    async with served(tmp_path, FILES) as client:
        assert found(await asked(client, kind="docs"))[0] == "README.md"
        for limits in ({"kind": "code"}, {"path": "src"}, {"language": "python"}):
            assert "README.md" not in found(await asked(client, **limits))
        assert found(await asked(client, "what_is_this_project_for"))[0] == "src/project.py"
        assert found(await asked(client, "what does this project weigh"))[0] != "README.md"


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ({"docs/readme.rst": "Pears\n=====\n\nSorts fruit.\n"}, "docs/readme.rst"),
        ({"README.md": "", "docs/README.md": "# Pears\n"}, "docs/README.md"),
        ({"README.zh.md": "# 梨\n", "README": "Pears: sorts fruit.\n"}, "README"),
        ({"deep/er/README.md": "# Pears\n"}, "src/project.py"),
    ],
)
async def test_what_introduces_a_project_has_a_usual_name_and_place(tmp_path, files, first):
    others = {key: text for key, text in FILES.items() if key.startswith("src/")}
    async with served(tmp_path, others | files) as client:
        assert found(await asked(client))[0] == first


@pytest.mark.parametrize(
    "query",
    ["what license is this under", "which licence does the project use", "how is this licensed"],
)
async def test_a_question_about_the_license_is_answered_with_it(tmp_path, query):
    other = {"lib/terms.py": "# license copyright redistribution of this project under terms\n"}
    write(tmp_path, FILES)
    async with served(tmp_path, {"COPYING": "Do as you like.\n", **other}) as client:
        assert found(await asked(client, query))[0] == "COPYING"


async def test_code_about_licenses_is_no_license(tmp_path):
    code = {"license.py": "LICENSE = 'mit'\n", "license-checker.js": "let license = 'mit';\n"}
    async with served(tmp_path, {"LICENSE.txt": "Do as you like.\n", **code}) as client:
        assert found(await asked(client, "under which license is this"))[0] == "LICENSE.txt"


async def test_a_question_about_licenses_in_the_code_is_searched(tmp_path):
    code = {"src/check.py": "def check_license_key(key):\n    return key.valid\n"}
    async with served(tmp_path, {"LICENSE.md": "Do as you like.\n", **code}) as client:
        for query in ("where is the license key checked", "what does the license tool do"):
            assert found(await asked(client, query))[0] == "src/check.py"
