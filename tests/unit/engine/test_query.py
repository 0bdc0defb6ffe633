"""What a query asks for, told by its wording alone."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vector_index_mcp.engine import kinds
from vector_index_mcp.engine.ranking.query import Query


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("parse_cookie", {"parsecookie"}),
        ("parseCookie", {"parsecookie"}),
        ("HTTPServer", {"httpserver"}),
        ("retry", {"retry"}),
        ("where is parse_cookie defined", {"parsecookie"}),
        ("Where is the class ShoppingCart defined?", {"shoppingcart"}),
        ("definition of `get_user`", {"getuser"}),
        ("find function getUser", {"getuser"}),
        ("class Foo", {"foo"}),
        ("addItem removeItem", {"additem", "removeitem"}),
        ("Foo::bar", {"bar"}),
        ("flask.sessions.SecureCookie", {"securecookie"}),
        ("Widget#render method", {"render"}),
        ("get-user-name", {"getusername"}),
        ("$scope", {"scope"}),
        ("__init__", {"init"}),
        ("_private", {"private"}),
        ("int main", {"main"}),
        ("int main(int argc, char** argv) {", {"main"}),
        ("static void Process_sort(ProcessList* this)", {"processsort"}),
        ("public Response handle(Request request) throws IOException", {"handle"}),
        ("public static void main(String[] args)", {"main"}),
        ("async def fetch(self, url: str) -> Page:", {"fetch"}),
        ("export default async function load(url) {", {"load"}),
        ("Response handle(Request request)", {"handle"}),
        ("pub(crate) fn total(items: T) -> u32", {"total"}),
        ("suspend fun load(url: String): String", {"load"}),
        ("def self.total(items)", {"total"}),
        ("local function total(items)", {"total"}),
        ("function M.total(items)", {"total"}),
        ("def total(items) do", {"total"}),
        ("void Cart::add(const Item& i) {", {"add"}),
        ("std::vector<int> primes(int n)", {"primes"}),
        ("struct item *find(int id)", {"find"}),
        ("public synchronized void run()", {"run"}),
        ("private Map<String, List<Item>> group(List<Item> x)", {"group"}),
        ("public int[] total()", {"total"}),
        ("public decimal Total(decimal x)", {"total"}),
        ("mutating func push(_ x: T)", {"push"}),
        ("func (s Server) Run() error", {"run"}),
        ("const total = (items) => {", {"total"}),
        ("pub fn parse<T>(input: &str) -> Result<T>", {"parse"}),
        ("func (s *Server) Run(ctx context.Context) error {", {"run"}),
        ("List<String> names(", {"names"}),
        ("char *strdup(const char *s);", {"strdup"}),
    ],
)
def test_an_identifier_is_asked_for_whatever_filler_stands_beside_it(text, symbols):
    query = Query(text)
    assert query.symbols == symbols
    assert query.is_symbol


@pytest.mark.parametrize(
    ("text", "symbols"),
    [
        ("where are retries with backoff handled", set()),
        ("http server", set()),
        ("what does get_user return when the session is gone", {"getuser"}),
        ("how does ShoppingCart compute the total", {"shoppingcart"}),
        ("user_id order_id item_id cart_id", {"userid", "orderid", "itemid", "cartid"}),
        ("where is the class defined", set()),
        ("static files", set()),
        ("async client for http", set()),
        ("public api of the client", set()),
        ("sub process", set()),
        ("final function response", set()),
        ("default type conversion", set()),
        ("static class attribute", set()),
        ("int parameter", set()),
        ("virtual function table", set()),
        ("Fix login() on Safari", set()),
        ("Redirect login(user name)", set()),
        ("Request timeout(30 s)", set()),
        ("Image size(too large)", set()),
        ("sub folder(s)", set()),
        ("short circuit(s)", set()),
        ("Redis cache(ttl): expired", set()),
        ("what are the steps of retry(s) here", set()),
        ("Max retries(s) for a client", set()),
        ("function", set()),
        ("explain src/app.py", set()),
        ("what is in src/config.py", set()),
        ("用户登录在哪里处理", set()),
        ("如何使用TLS连接数据库", set()),
        ("", set()),
        ("???", set()),
    ],
)
def test_a_sentence_is_no_identifier_but_may_hold_some(text, symbols):
    query = Query(text)
    assert query.symbols == symbols
    assert not query.is_symbol


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("What does parse_cookie(value) do?", ["What", "does", "parse_cookie", "value", "do"]),
        ("see `a.b`, then [c].", ["see", "a.b", "then", "c"]),
        ("x: y::z.", ["x", "y::z"]),
        ("...", []),
    ],
)
def test_tokens_are_the_words_as_typed_without_punctuation(text, tokens):
    assert Query(text).tokens == tokens


def test_the_definition_of_an_identifier_is_matched_besides_its_words():
    assert Query("parse_cookie").matched == ["parsecookie", "parse", "cookie", "=parsecookie"]
    assert Query("Foo::barBaz").matched[-1] == "=barbaz"
    assert Query("parse the cookie").matched[-2:] == ["=parsecookie", "=parsethecookie"]
    assert not any(word.startswith("=") for word in Query("how are retries made").matched)
    assert not Query("+ -").spelled_out


def test_the_subject_has_each_idea_once():
    query = Query("the user name is shown")
    assert "username" in query.words
    assert query.subject == ["user", "name", "shown"]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("what is in src/flask/app.py for", ["src/flask/app.py"]),
        ("see README.md", ["README.md"]),
        ("./src/a.ts and ../b/c.ts", ["src/a.ts", "b/c.ts"]),
        ("/src/app.py", ["src/app.py"]),
        ("src/components", ["src/components"]),
        (".gitignore", [".gitignore"]),
        (".github/workflows/ci.yml", [".github/workflows/ci.yml"]),
        ("`lib/a-b_c@2+.js`", ["lib/a-b_c@2+.js"]),
        ("parse_cookie", []),
        ("version 1.2", []),
        ("how does it end.", []),
        ("std::vector", []),
        ("ключ/фаил.py", ["ключ/фаил.py"]),
        ("cafe\u0301.py", ["caf\u00e9.py"]),
        ("डेटा.py", ["डेटा.py"]),
        ("see pages/[id].tsx, please", ["pages/[id].tsx"]),
        ("look in `tpl/{{name}}/a.py`.", ["tpl/{{name}}/a.py"]),
        ("routes/(group)/+page.svelte", ["routes/(group)/+page.svelte"]),
        ("open(src/a.py)", ["src/a.py"]),
        ("at src/app.py:12:5", ["src/app.py"]),
        ("src/app.py:10-20", ["src/app.py"]),
        ("src/app.py#L3-L7", ["src/app.py"]),
        ("(App.java:55)", ["App.java"]),
        ("src\\app\\main.py", ["src/app/main.py"]),
        ("Some\\Name", []),
        ("a//b.py", []),
    ],
)
def test_paths_are_the_tokens_that_name_a_file(text, paths):
    assert Query(text).paths == paths


@pytest.mark.parametrize(
    ("text", "phrases"),
    [
        ('who says "No such file" here', ["No such file"]),
        ("who says 'No such file' here", ["No such file"]),
        ("who says `No such file` here", ["No such file"]),
        ("\"one\" and 'two' and `three`", ["one", "two", "three"]),
        ("“one two” and ‘three’ and «four» and 「五六」", ["one two", "three", "four", "五六"]),
        ('what does "best" mean', ["best"]),
        ('Failed to append a segment in "video" with error', []),
        ('Failed to append a segment in "main video" with error', ["main video"]),
        ("it's the user's name", []),
        ("how are the users' names and groups' ids merged", []),
        ("an unclosed \" quote", []),
        ('"x"', []),
        ("no quotes", []),
    ],
)  # fmt: skip
def test_phrases_are_what_stands_in_quotes(text, phrases):
    assert Query(text).phrases == phrases


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("Tests of the parser", {kinds.TEST}),
        ("which mocks and fixtures are there", {kinds.TEST}),
        ("an example of usage", {kinds.EXAMPLE}),
        ("the README, please", {kinds.DOCS}),
        ("old vendored code", {kinds.DEPRECATED, kinds.VENDORED}),
        ("where is the YAML config", {kinds.DATA}),
        ("type stubs", {kinds.DECLARATIONS}),
        ("the latest contest", set()),
        ("where are retries handled", set()),
        ("test_client", set()),
    ],
)
def test_the_kinds_of_files_that_a_query_asks_for(text, asked):
    assert Query(text).kinds == asked


LONG = {
    "distinct": " ".join(f"word{n:x}" for n in range(6_000)),
    "names": " ".join(f"getWord_{n:x}" for n in range(3_500)),
    "repeated": "word " * 10_000,
    "one": "a" * 50_000,
    "capitals": "A" * 50_000,
    "parts": "aB" * 25_000,
    "dots": "a." * 25_000,
    "lines": ":1" * 25_000 + "x",
    "slashes": "a/" * 25_000,
    "paths": " ".join(f"src/a{n}.py" for n in range(4_000)),
    "phrases": " ".join(f"'word {n}'" for n in range(4_000)),
    "quotes": "“a" * 25_000,
    "brackets": "[a" * 25_000,
    "Chinese": "".join(chr(0x4E00 + n % 20_000) for n in range(50_000)),
    "emoji": "👩🏽‍💻" * 12_000,
    "nothing": "\0" * 50_000,
}


@pytest.mark.parametrize("kind", LONG)
def test_of_a_long_query_only_so_much_is_used(kind):
    began = time.process_time()
    query = Query(LONG[kind])
    assert len(query.matched) <= 128
    assert len(query.subject) <= 96
    assert len(query.paths) <= 32
    assert len(query.phrases) <= 16
    assert query.kinds <= frozenset(kinds._BY_PATH)
    assert time.process_time() - began < 2  # what takes the square of the length takes more


def test_of_a_long_query_the_most_specific_words_are_used():
    lines = [f'  File "/usr/lib/python3.11/x/m{n}.py", line {n}, in call_{n}' for n in range(200)]
    query = Query("\n".join([*lines, "KeyError: unknown_warehouse_identifier in stockKeeping"]))
    assert {"unknownwarehouseidentifier", "warehouse", "stockkeeping"} <= set(query.matched)
    assert "=unknownwarehouseidentifier" in query.matched
    assert query.paths[0].endswith("m0.py")
    assert query.paths[-1].endswith("m199.py")


@given(st.text(max_size=60))
@example("-> :: . / \\ # $ _")
@example('"\'`"')
@example("a/" * 30 + "!")
@example("\ud800")
def test_every_text_is_a_query(text):
    query = Query(text)
    assert len(query.identifiers) <= len(query.tokens)
    assert set(query.subject) <= set(query.words) <= set(query.matched)
    assert not query.is_symbol or query.identifiers
    assert all(word.split() == [word] for word in query.matched)
    assert all(not path.startswith(("/", "./", "../")) for path in query.paths)
    assert all(phrase in text for phrase in query.phrases)


def test_of_words_made_of_several_the_whole_is_known():
    assert Query("APP_ENV of foo.barBaz, aa_aa and user name").compounds == {
        *("appenv", "barbaz", "aaaa"),
    }


def test_a_name_of_thousands_of_words_is_no_compound():
    """Joined in all ways, they took half a minute."""
    assert Query("_".join(f"w{number}" for number in range(8_000))).compounds == frozenset()
