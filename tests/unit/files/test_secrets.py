"""Names that tell of secrets, and credentials in texts.

The credentials are put together here, so that no scanner takes this file for a leak.
"""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vector_index_mcp.files.secrets import is_key, is_secret, masked, values

HEX = "9f86d081884c7d659a2feaa0c55ad015"
MIXED = "q7Zx2Lw9Tb4Rk8Vn3Hc6Yd1Mf5Gs0Jp"
KEY_BODY = "MIIBOgIBAAJBAKj34GkxFhD90vcNLYLInFEX\nPpyiWbcF4Uo8J3\n"

CREDENTIALS = [
    "AKIA" + "IOSFODNN7QWERTYU",
    "ghp_" + "a1B2" * 9,
    "github_pat_" + "11ABCDEFG0" + "xY2z" * 5,
    "glpat-" + "Ab1_" * 5,
    "xoxb-" + "123456789012-" + "Zk" * 12,
    "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
    "AIza" + "Sy" + "D" * 32 + "9",
    "GOCSPX-" + "a1b2" * 7,
    "sk-proj-" + MIXED,
    "sk-ant-" + "api03-" + MIXED,
    "hf_" + "abcdefGHIJ" * 3 + "klmn",
    "npm_" + "a1B2" * 9,
    "pypi-AgE" + "IcHlwaS5vcmc" * 5,
    "SG." + "a1B2c3" * 3 + "abcd" + "." + "x9" * 21 + "z",
    "dop_v1_" + HEX * 2,
    "shpat_" + HEX,
    "1234567890:AA" + "H" * 33,
    "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxMjM0NTY3OD" + "." + "SflKxwRJSMeKKF2QT4fw",
]


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (".env", True),
        ("x/.env.local", True),
        ("prod.env", True),
        ("x/ID_RSA", True),
        ("server.pem", True),
        ("credentials", True),
        ("service-account-1.json", True),
        ("terraform.tfstate", True),
        (".env.example", False),
        ("x/.ENV.Sample", False),
        ("my.example.env", False),
        ("env.py", False),
        ("id_rsa.pub", False),
        ("credentials.py", False),
        (".env/a.py", False),
    ],
)
def test_names_of_secrets_are_known(key: str, expected: bool) -> None:
    assert is_secret(key) is expected


@pytest.mark.parametrize("credential", CREDENTIALS)
def test_the_formats_of_providers_are_masked_wherever_they_stand(credential: str) -> None:
    text = f"# how to log in\nclient.login({credential!r}, retries=3)\n"

    assert masked(text) == (text.replace(credential, "*" * len(credential)), 1)


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        (f'API_KEY = "{MIXED}"', MIXED),
        (f"APP_KEY=base64:{MIXED}", f"base64:{MIXED}"),
        ('variable "db_password" {\n  type = string\n  default = "Ab3!kkd9"\n}', "Ab3!kkd9"),
        (f"  stripe_secret: '{HEX}'", HEX),
        (f'{{"accessToken": "{MIXED}"}}', MIXED),
        (f'const privateKey := "{MIXED}"', MIXED),
        ("url = 'postgres://admin:h7Rt2kLq@db.internal:5432/app'", "h7Rt2kLq"),
        (f"AccountKey={MIXED * 2}{HEX[:24]}==;EndpointSuffix", f"{MIXED * 2}{HEX[:24]}=="),
        (
            f"https://hooks.slack.com/services/T0AB12CD3/B0EF45GH6/{HEX}",
            f"T0AB12CD3/B0EF45GH6/{HEX}",
        ),
    ],
)
def test_only_the_secret_itself_is_masked(text: str, secret: str) -> None:
    assert masked(text) == (text.replace(secret, "*" * len(secret)), 1)


@pytest.mark.parametrize(
    "text",
    [
        "api_keys: [«{key}», '«{other}»']\n",
        'API_KEYS = [\n    "«{key}»",  # first\n    "«{other}»",\n]\nchecksum = "{key}"\n',
        'auth_tokens := []string{{"«{key}»", "«{other}»"}}\n',
        'PASSWORDS = {{"bob": "«hunter2!x»", "eve": "«Tr0ub4dor»"}}\n',
        "passwords:\n  - «hunter2!x»\n  - «Tr0ub4dor» # of the box\nchecksum: {key}\n",
        "tokens:\n- «{key}»\n- «{other}»\n",
        "tokens:\n  github: «{key}»\n  gitlab: «{other}»\nchecksum: {key}\n",
        "password: |\n  «hunter2pw9!»\nuser: bob7x9!\n",
        "db:\n  password: >-\n    «sunflower77»\n  user: bob7x9!\n",
        "private_key: |\r\n  «{key}»\r\n  «{other}»\r\nchecksum: {key}\r\n",
        "| user | password |\n|:---|---:|\n| bob | «hunter2!x» |\n| eve | `«Tr0ub4dor»` |\n",
        "| A | Value |\n|---|---|\n| **DB password** | «hunter2p!9» |\n| API key | `«{key}»` |\n",
        'user,password,mail\nbob,«hunter2!x»,b@x.io\n"e, v","«Tr0ub4dor»",e\n\nbob,«hunter2!x»,b\n',
        "As follows:\n\n```csv\nname;api token;id\na;«{key}»;1\n```\n",
        "user\tpassword\nbob\t«hunter2!x»\n",
        ",user,password,\n0,bob,«hunter2!x»,\n",
        "from,to,password\nx,y,«hunter2!x»\n",
        "user | password?\n--- | ---\nbob | «hunter2!x»\n",
        "| [user](x) | 🔑 password |\n|---|---|\n| bob | «hunter2!x» |\n",
        'name,note,password\nbob,"two\nlines",x\neve,one,«hunter2!x»\n',
        "user,pass\nbob,«hunter2!x»\n",
        "passwords:\n  # of the box\n  bob: «hunter2!x»\n\n  eve: «Tr0ub4dor»\n",
        "passwords:\n  - ${{X}}\n  - «hunter2!x»\n",
        "password: !vault |\n\n  «hunter2!x»\nuser: bob7x9!\n",
        'var apiKeys = map[string]string{{"a": "«{key}»"}}\n',
        "$tokens = array('a' => '«{key}»', 'b' => '«{other}»');\n",
        'val tokens = listOf("«{key}»")\n',
        'let tokens = vec!["«{key}»"];\n',
        'password = "«84729163»"\n',
        "- **Password:** «hunter2!x»\n- **API key**: `«{key}»`\n",
        "Set **SECRET_KEY=«{key}»** there.\n",
        "api_key = \"\"\"\n«{key}»\"\"\"\npassword = '''«hunter2!x»'''\n",
        "mot de passe : «hunter2!x»\n",
        "DB_PASSWORD=«84729163»\n",
        "https://b.s3.example.com/k?X-Amz-Date=20250101&X-Amz-Signature=«{key}{other}»\n",
        "INSERT INTO x (n, password) VALUES (1, '«hunter2!x»'), (2, 'e''ve'), (3, '«Tr0ub4dor»');",
        "insert into `a`.`b`\n(`mail`, -- c\n`passwd`)\nvalues\n('a', \"«hunter2!x»\")\n;",
        "INSERT INTO [dbo].[Users] ([Mail], [Password]) VALUES (N'bob', N'«hunter2!x»')\nGO\n",
        "INSERT INTO users (n, password) VALUES (now(), crypt('«hunter2!x»', gen_salt('bf')));",
        "db.exec(\"INSERT INTO users(name, api_token) VALUES('bob, x', '«{key}»')\")\n",
        "INSERT INTO t (password, d) VALUES (NULL, '2'::date),\n-- c\n('«hunter2!x»', '1');",
        "COPY a.b (n, password, api_key) FROM stdin;\n1\t«hunter2!x»\t\\N\n2\t\t«{key}»\n\\.\n"
        "x\tx1!y2z\n",
    ],
)
def test_secrets_in_lists_tables_rows_and_blocks_are_masked(text: str) -> None:
    text = text.format(key=MIXED, other=f"Zw{MIXED[::-1]}")
    shown = re.sub("«(.*?)»", lambda secret: "*" * len(secret[1]), text)

    assert masked(re.sub("[«»]", "", text))[0] == shown


@pytest.mark.parametrize(
    "text",
    [
        '"Password": {"type": "string", "pattern": "^[a-zA-Z0-9_=]+$", "minLength": 8}\n',
        '"pattern": "^arn:aws:secretsmanager:[a-z0-9-]+:secret:[a-zA-Z0-9/_+=.@-]+$"\n',
        "def auth(self, credentials: Credentials) -> SigV4Auth:\n    return SigV4Auth(self)\n",
        "if password:\n    x: int = 5\n    return a1b2c3!\n",
        "\t// Cache the tokens\n\t\nvar rsingle = ( /^<([a-z][^\\0>:]*)\\x20>$/i );\n",
        "import re, token\nfrom hashlib import sha256, x1y2z3q4w5\n",
        "from x import a, token\nfrom y import b, sha256_x1y2!\n",
        "user, password = read()\nhost, r00tP4ss! = b, c\n",
        "| password | string | At least 8 characters |\n| token | `str2` | since v2.1.4 |\n",
        "| password | sha256sum -c |\n",
        "echo a | password | x1y2z3!\n",
        "max_tokens: 4096000\nPASSWORD_LENGTH = 84729163\npassword_resets = 84729163\n",
        "tokens = tokenizer.encode('hello1!')\n",
        "password = 84729163\n",
        "pass: 84729163\n",
        "'password' => ['required', 'min:8', 'regex:/[0-9]/', 'confirmed!x'],\n",
        "password:\n  - required|string|min:8\n",
        'tokens = {"USDC": "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"}\n',
        "imagePullSecrets:\n  - name: regcred2-x9k4\n",
        f"secrets:\n  - name: x\n    sha256: {HEX}{HEX}\n",
        "dataset,passwords\nlinkedin,177500189\n",
        "| Year | Passwords |\n|---|---|\n| 2012 | 177500189 |\n",
        "test,pass,fail\na,b2-win!x,3\n",
        "INSERT INTO users (mail, password) SELECT mail, 'x1y2z3!' FROM old;\n",
        'execute("INSERT INTO users (name, password) VALUES (?, ?)", (name, h4sh_it!))\n',
        "INSERT INTO users (password, mail) VALUES (NULL, 'b0b!x'), ('', 'x1y2!z');\n",
        "login(user, password) VALUES ('bob', 'x1y2z3!')\n",
        "char **password; // x1y2!z\n",
        "- **Password:** required, min8!\n- **Token:** the `tok3n!x` of a user\n",
    ],
)
def test_what_only_looks_like_a_list_or_table_of_secrets_stays(text: str) -> None:
    assert masked(text) == (text, 0)


@pytest.mark.parametrize(
    "text",
    [
        "passwords," * 40_000,
        "a,passwords\n" * 40_000,
        "|passwords" * 190 + "|\n" + "|x1!x1y" * 190 + "|\n" * 2_000,
        "tokens:\n  - tokens:\n" + "  - tokens:\n" * 30_000,
        "tokens: [" * 40_000,
        "passwords: [a1, " + "b, " * 100_000,
        "password: |\n" + "  password: |\n" * 30_000,
        '"passwords,' * 40_000,
        "(password " * 40_000,
        "insert into x(password) values ('" * 12_000,
        "insert into x(" + "password," * 40_000,
        "insert into x(password) values " + "\n--a" * 80_000,
        "insert into x(password) values (" + "f(" * 150_000,
        "copy x(n, password) from stdin;\n" + "a\tb1!x2y\n" * 40_000,
    ],
    ids=range(14),
)
@pytest.mark.slow
@pytest.mark.timeout(20)
def test_no_list_or_table_keeps_us_busy(text: str) -> None:
    masked(text)


LONG = "".join(f"{n * n % 10}{chr(65 + n * 7 % 26)}{chr(97 + n * 11 % 26)}" for n in range(400))
"""Of the length of a session token: 1,200 characters."""


@pytest.mark.parametrize("times", [1, 5])
@pytest.mark.parametrize(
    "text",
    [
        "export AWS_SESSION_TOKEN={}",
        "api_token: {}",
        'password = "{}"',
        "Authorization: Bearer {}",
        "https://bob:{}@example.org/",
        "https://example.org/?sig={}",
    ],
)
def test_a_secret_is_masked_however_long_it_is(text: str, times: int) -> None:
    secret = LONG * times
    assert masked(f"{text.format(secret)}\n") == (f"{text.format('*' * len(secret))}\n", 1)


def test_names_that_stand_in_values_of_names_cost_little() -> None:
    """Each is looked at for as much as the text is long, not for as much as a value may be."""
    judged = 0

    def counted(written: str) -> bool:
        nonlocal judged
        judged += len(written)
        return False

    text = "password=" * 3_000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "is_placeholder", counted)
        masked(text)
    assert judged < 5 * len(text)


def test_the_lines_of_a_key_inside_a_text_stay_lines() -> None:
    text = f"KEY = '''-----BEGIN RSA PRIVATE KEY-----\n{KEY_BODY}-----END RSA PRIVATE KEY-----'''\n"

    found, count = masked(text)

    assert count == 1
    assert [len(line) for line in found.split("\n")] == [len(line) for line in text.split("\n")]
    assert "MIIBOg" not in found
    assert "-----BEGIN RSA PRIVATE KEY-----" in found


@pytest.mark.parametrize(
    "text",
    [
        'password = "correct horse battery staple"',
        'token = "your-token-1234567890"',
        'api_key = "${STRIPE_API_KEY_1234}"',
        'secret = get_secret("database/password/1")',
        'password_field = "user_password_confirmation"',
        "postgres://user:password@localhost/app",
        "postgres://{user}:{secret1}@localhost/app",
        "the tokens of a text are counted: key=1234567890123456",
        "task-management-with-a-long-name-1234567890",
        "def test_ghp_prefix(): ...",
        f'content_hash = "{HEX}"',
    ],
)
def test_what_only_resembles_a_secret_stays(text: str) -> None:
    assert masked(text) == (text, 0)


def test_every_credential_is_counted_once() -> None:
    text = f'token = "{CREDENTIALS[1]}"  # and {CREDENTIALS[5]}'

    found, count = masked(text)

    assert count == 2
    assert CREDENTIALS[1] not in found
    assert CREDENTIALS[5] not in found


@given(
    st.lists(
        st.one_of(st.text(max_size=40), st.sampled_from(CREDENTIALS), st.just("secret='"))
    ).map("".join)
)
def test_nothing_moves(text: str) -> None:
    found, _ = masked(text)

    assert len(found) == len(text)
    assert all(new in {old, "*"} for new, old in zip(found, text, strict=True))
    assert [i for i, c in enumerate(found) if c.isspace()] == [
        i for i, c in enumerate(text) if c.isspace()
    ]


@pytest.mark.parametrize("kind", ["RSA PRIVATE KEY", "PRIVATE KEY", "PGP PRIVATE KEY BLOCK"])
def test_a_file_that_is_a_key_is_known_by_its_beginning(kind: str) -> None:
    assert is_key(f"\n-----BEGIN {kind}-----\n{KEY_BODY}")
    assert not is_key(f"see -----BEGIN {kind}-----")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("password: Tr0ub4" + "dor&3", "password: ***********"),
        ("password: Tr0ub4" + "dor&3x&9y", "password: ***************"),
        ("PASSWORD=ab&Xy12" + "zz$9Qw", "PASSWORD=*************"),
        ("PASS=pa4s&Word12" + "3!", "PASS=*************"),
        (
            "Id=sa;Password=Zk4vT7qP&vQ9" + "xLm;Encrypt=True",
            "Id=sa;Password=***************;Encrypt=True",
        ),
        ("password: aB3$xY9k&amp;Zq7" + "more", "password: ********************"),
        ("/?password=Tr0ub4" + "dor9&page=3", "/?password=**********&page=3"),
        ("<b>password: Tr0ub4" + "dor9&lt;", "<b>password: **********&lt;"),
    ],
)
def test_a_password_is_masked_behind_an_ampersand_too(text: str, shown: str) -> None:
    assert masked(text) == (shown, 1)


@pytest.mark.parametrize(
    "code",
    ["token = h1&mask2", "secret = key1&key2", "pwd = data16&0xff", "bool pass = value&1"]
    + ["pass = crc32&0xffff", "pass = count1&count2", "password=hash1&0xFF"],
)
def test_operands_are_no_password(code: str) -> None:
    assert masked(code) == (code, 0)
