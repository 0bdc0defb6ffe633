"""What kind of file a path names, by conventions only."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.kinds import (
    BARREL,
    DATA,
    DECLARATIONS,
    DEPRECATED,
    DOCS,
    EXAMPLE,
    GENERATED,
    TEST,
    VENDORED,
    kinds_asked_for,
    kinds_of,
    names_tests,
)

PATHS = {
    TEST: """
        tests/a.py test/a.js src/test/java/A.java testing/a.py testdata/a.py spec/foo_spec.rb t/a.t
        xt/a.t ext/A/t/a.t testsuite/a.c test-data/a.py internal/testutil/a.go TestUtils/a.swift
        test_helpers/a.rb TestCases/a.cs a/__fixtures__/b.js a/__snapshots__/b.js cypress/a.ts
        a/__tests__/b.js a/__mocks__/b.js e2e/a.ts fixtures/a.py mocks/a.go benches/a.rs
        benchmarks/a.py app/src/androidTest/A.kt my-tests/a.py unit_test/a.cc
        Tests/AppTests/a.swift MyApp.Tests/a.cs AppTests/a.swift Test/a.cs
        test_a.py tests.py src/tests.rs conftest.py a_test.go a.test.ts a.spec.js a-test.js
        a_spec.rb Button.stories.tsx FooTest.java FooTests.cs FooSpec.scala FooTestCase.php
        """,
    EXAMPLE: "examples/a.py Example/a.py samples/a.c demo/a.ts tutorials/a.py playground/a.ts",
    DOCS: """
        docs/conf.py doc/a.py Documentation/a.py docs_src/a.py doc-examples/a.js CHANGELOG CHANGES
        HISTORY NEWS
        """,
    GENERATED: """
        generated/a.py __generated__/a.ts dist/a.js build/a.js a_pb2.py a_pb2_grpc.py a.pb.go
        a.g.dart a.gen.ts a.generated.cs a.Designer.cs a.min.js a_pb.js yarn.lock Cargo.lock
        package-lock.json pnpm-lock.yaml a.js.map a.test.ts.snap
        """,
    VENDORED: """
        vendor/a.go vendored/a.py pip/_vendor/a.py third_party/a.c third-party/a.c thirdparty/a.c
        plug/web/static/underscore.js public/js/jquery-3.7.1.js assets/vue.global.js
        static/d3.v7.css
        web/node_modules/a.js external/a.c externals/a.c extern/a.c deps/a.c Pods/A.m
        """,
    DEPRECATED: "deprecated/a.py src/legacy/a.ts compat.py a_old.py old/a.c a-legacy.js",
    DECLARATIONS: "a.d.ts a.d.mts a.d.cts a.pyi",
    BARREL: "a/__init__.py a/__main__.py index.ts src/index.jsx index.mjs src/mod.rs",
}
ORDINARY = """
    src/latest/attest.py contest.py src/greatest.ts Latest.java Contest.java Attest.cs fastest.go
    protest/a.py contests/a.py attestation.py testament.py src/inspect.py aspect.rb special.py
    mockingbird.py detest/a.py spectest.py exampled.py demos.py sampler/a.py demonstrate/a.py
    builder.py rebuild/a.py building/a.py distance/a.py distributed.py minimum.js pb.py lockfile.py
    block.py roadmap.py snapshot.py independent/a.py deposit.py vendors.py internal/a.go
    underscore.js src/vue.js
    static/chart.js static/jquery_of_ours.js static/bootstrap.js
    tt/a.py cat/a.py ext/a.c latest_data/a.py attest/utils/a.py test_state/a.py
    golden.py bold/a.py threshold.py folder/a.py compatible.py hold.py reindex.ts model.rs
    modules.rs init.py docstring.py docker/a.py documents/a.py doctor.py newsletter.py newsfeed/a.ts
    history.ts src/history/a.ts src/news/a.py changes.py exchange/a.py changelog.py docs.py
    doc_parser/a.py docs-viewer/a.ts
    """


@pytest.mark.parametrize(
    ("kind", "path"), [(kind, path) for kind, paths in PATHS.items() for path in paths.split()]
)
def test_the_path_tells_the_kind(kind, path):
    assert kind in kinds_of(path, "")


@pytest.mark.parametrize("path", ORDINARY.split())
def test_names_that_only_look_like_a_kind_are_ordinary_code(path):
    assert kinds_of(path, "python") == frozenset()


@pytest.mark.parametrize(
    ("language", "kind"),
    [
        ("markdown", DOCS),
        ("rst", DOCS),
        ("text", DOCS),
        ("json", DATA),
        ("yaml", DATA),
        ("css", DATA),
        ("other", DATA),
    ],
)
def test_the_language_tells_prose_and_data(language, kind):
    assert kinds_of("src/a.b", language) == {kind}


@pytest.mark.parametrize("language", ["python", "go", "sql", "vue", "bash", "typescript", ""])
def test_code_is_of_no_kind_by_its_language(language):
    assert kinds_of("src/a", language) == frozenset()


def test_a_file_may_be_of_several_kinds():
    assert kinds_of("vendor/tests/data.json", "json") == {VENDORED, TEST, DATA}


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ("tests parser", {TEST}),
        ("a tutorial", {EXAMPLE, DOCS}),
        ("readme", {DOCS}),
        ("latest contest", set()),
        ("", set()),
    ],
)
def test_words_ask_for_kinds(words, asked):
    assert kinds_asked_for(words.split()) == asked


@pytest.mark.parametrize(
    "asking",
    [
        "login tests",
        "cookie jar spec",
        "where are the integration tests of the cookie jar",
        "how do the unit tests start a server",
        "are there any benchmarks yet that compare both parsers",
        "everything like regression tests for lost sessions",
    ],
)
def test_a_query_asks_for_tests(asking):
    assert kinds_asked_for(asking.split()) == {TEST}


@pytest.mark.parametrize(
    "telling",
    [
        "hanging test stack dump",
        "resume at the first test that failed",
        "which hooks run before and after each test",
        "keep all files in memory for unit tests",
        "how does the runner write fixtures to disk",
    ],
)
def test_a_query_with_a_word_for_tests_may_ask_for_code(telling):
    assert names_tests(telling.split())
    assert kinds_asked_for(telling.split()) == set()


def test_every_kind_but_barrels_can_be_asked_for():
    every = {value for name, value in vars(kinds).items() if name.isupper() and name[0] != "_"}
    asked = frozenset().union(
        *(kinds_asked_for([word]) for words in kinds._ASKING.values() for word in words)
    )
    assert asked == every - {BARREL}


@pytest.mark.parametrize("path", ["bin/deploy", "hooks/functions", "libexec/bats-exec-file"])
def test_what_may_be_a_script_is_no_data(path):
    assert kinds_of(path, "other") == frozenset()


@pytest.mark.parametrize("path", ["LICENSE", "a/AUTHORS", ".npmrc", "fonts/a.ttx", "COPYING-3"])
def test_other_files_of_no_known_language_are_data(path):
    assert kinds_of(path, "other") == {DATA}


@given(st.text(max_size=40), st.text(max_size=10))
def test_every_path_has_kinds(path, language):
    every = {value for name, value in vars(kinds).items() if name.isupper() and name[0] != "_"}
    assert kinds_of(path, language) <= every
