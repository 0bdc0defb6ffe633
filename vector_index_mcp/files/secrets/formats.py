"""Finds tokens by their provider's mark, such as `ghp_`, anywhere in a text.

The providers document these formats, or they are known from use; gitleaks keeps the best public
list. Marks, alphabets and lengths are facts; the patterns are our own.
"""

import re
from collections.abc import Iterator

from vector_index_mcp.files.secrets.linear import Pattern
from vector_index_mcp.files.secrets.looks import is_blank

_HEX, _LOW, _AN, _URL, _B64 = "[0-9a-f]", "[0-9a-z]", "[0-9A-Za-z]", r"[\w-]", "[0-9A-Za-z+/]"
_UUID = f"{_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}"

_CLOUDS = (
    r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}",  # AWS
    rf"ABSK{_B64}{{60,}}={{0,2}}",
    rf"da2-{_LOW}{{26}}",
    rf"amzn\.mws\.{_UUID}",
    rf"AIza{_URL}{{35}}",  # Google
    rf"GOCSPX-{_URL}{{28}}",
    rf"ya29\.{_URL}{{30,}}",
    rf"1//0{_URL}{{30,}}",
    rf"LTAI{_AN}{{16,24}}",  # Alibaba
    rf"AKID{_AN}{{32}}",  # Tencent
    rf"AQVN{_URL}{{35,38}}",  # Yandex
    rf"y0_{_URL}{{50,}}",
    rf"t1\.[A-Z0-9a-z_-]+={{0,2}}\.{_URL}{{86}}={{0,2}}",
    rf"do[oprt]_v1_{_HEX}{{64}}",  # DigitalOcean
    rf"HRKU-AA{_URL}{{58}}",  # Heroku
    rf"nfp_{_AN}{{36}}",  # Netlify
    rf"fo1_{_URL}{{43}}|FlyV1 fm[12][ar]?_{_B64}{{60,}}={{0,3}}|fm2_{_B64}{{100,}}={{0,3}}",
    rf"rnd_{_AN}{{28}}",  # Render
    rf"vc[pikar]_{_AN}{{56}}",  # Vercel
    rf"v1\.0-{_HEX}{{24}}-{_HEX}{{146}}",  # Cloudflare
    rf"tskey-[a-z]+-{_AN}{{6,}}(?:-{_AN}{{10,}})?",  # Tailscale
    rf"sha256~{_URL}{{43}}",  # OpenShift
    r"A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    rf"ops_eyJ{_B64}{{100,}}={{0,3}}",  # 1Password
    r"AGE-SECRET-KEY-1[02-9AC-HJ-NP-Z]{58}",
    rf"hv[sbr]\.{_URL}{{24,}}",  # Vault
    rf"pul-{_HEX}{{40}}",
    rf"dp\.(?:pt|ct|scim|audit|sa|said)\.{_AN}{{40,44}}|dp\.st\.(?:[\w-]+\.)?{_AN}{{40,44}}",
    r"dt0c01\.[A-Z2-7]{24}\.[A-Z2-7]{64}",  # Dynatrace
    rf"dapi{_HEX}{{32}}(?:-[0-9])?",  # Databricks
    r"pscale_(?:tkn|pw|oauth)_[\w.=-]{32,64}",
    rf"sbp_{_HEX}{{40}}|sb_secret_{_URL}{{31}}",  # Supabase
    rf"napi_{_LOW}{{40,}}",  # Neon
    rf"4b1d{_AN}{{38}}",  # ClickHouse
)
_CODE_AND_PACKAGES = (
    rf"gh[pousr]_{_AN}{{36,}}|github_pat_\w{{22,}}",
    rf"gl(?:pat|dt|ft|rt|soat|rtr)-{_URL}{{20,}}(?:\.[0-9a-z]{{2}}\.{_LOW}{{9}})?",
    rf"glptt-{_HEX}{{40}}|glcbt-(?:{_AN}{{1,5}}_)?{_URL}{{20}}|glimt-{_URL}{{25}}",
    rf"glagent-{_URL}{{50}}|gloas-{_HEX}{{64}}|glffct-{_URL}{{20}}|GR1348941{_URL}{{20}}",
    rf"ATATT3{_URL}{{30,}}(?:={_AN}{{8}})?|ATCTT3{_URL}{{30,}}(?:={_AN}{{8}})?",  # Atlassian
    rf"ATBB{_AN}{{24,32}}|ATTA{_HEX}{{64}}{_AN}{{8}}",
    rf"npm_{_AN}{{36}}",
    rf"pypi-AgE{_URL}{{50,}}",
    rf"rubygems_{_HEX}{{48}}",
    rf"oy2{_LOW}{{43}}",  # NuGet
    rf"cio{_AN}{{32}}",  # crates.io
    rf"CLOJARS_{_LOW}{{60}}",
    rf"AKCp{_AN}{{69}}|cmVmdGtu{_AN}{{56}}",  # JFrog
    rf"dckr_(?:pat|oat)_{_URL}{{27,}}",  # Docker
    rf"packagist_\w{{2,5}}_{_HEX}{{64,68}}",
    rf"sq[pua]_{_HEX}{{40}}",  # SonarQube
    rf"CCIP(?:AT|RJ)_{_AN}{{22}}_{_HEX}{{40}}",  # CircleCI
    rf"bk(?:ua|aj|at|ct|pt)_{_AN}{{32,}}",  # Buildkite
    rf"(?:pat|sat)\.{_URL}{{22}}\.{_LOW}{{24}}\.{_AN}{{20}}",  # Harness
    r"API-[A-Z0-9]{26}",  # Octopus
    rf"sgp_(?:(?:{_HEX}{{16}}|local)_)?{_HEX}{{40}}",  # Sourcegraph
    rf"snyk_\w{{3,8}}\.{_URL}{{20,}}\.{_URL}{{20,}}",
    rf"sntryu_{_HEX}{{64}}|sntrys_eyJ{_B64}{{40,}}={{0,2}}_{_B64}{{43}}",  # Sentry
    rf"NRAK-[A-Z0-9]{{27}}|NRJS-{_HEX}{{19}}|NRII-{_URL}{{32}}",  # New Relic
    rf"glsa_{_AN}{{32}}_[0-9A-Fa-f]{{8}}|glc_eyJ{_B64}{{32,}}={{0,3}}",  # Grafana
    rf"pnu_{_AN}{{36}}|pnb_{_AN}{{36}}",  # Prefect
    rf"(?:sdk|mob|api)-{_UUID}",  # LaunchDarkly
)
_MODELS = (
    rf"sk-(?:ant|proj|svcacct|admin|None)-{_URL}{{20,}}|sk-{_AN}{{20}}T3BlbkFJ{_AN}{{20}}",
    rf"sk-or-v1-{_HEX}{{64}}",
    r"hf_[A-Za-z]{34}|api_org_[A-Za-z]{34}",
    rf"pplx-{_AN}{{48}}",
    rf"gsk_{_AN}{{52}}",
    rf"xai-{_AN}{{70,90}}",
    rf"r8_{_AN}{{37}}",
    rf"lsv2_[ps][tk]_{_HEX}{{32}}_{_HEX}{{10}}",
    rf"tvly-(?:dev-|prod-)?{_AN}{{32}}",
    rf"pcsk_{_AN}{{4,8}}_{_AN}{{60,64}}",
    rf"csk-{_LOW}{{48}}",
    rf"sk_{_HEX}{{48}}",  # ElevenLabs
)
_MESSAGES = (
    rf"xox[abeoprs]-(?:[0-9]+-){{1,4}}[\w-]{{10,}}|xoxe(?:\.xox[bp])?-[0-9]-{_AN}{{100,}}",  # Slack
    rf"xapp-[0-9]-[A-Z0-9]+-[0-9]+-{_LOW}{{32,}}|xwfp-[\w-]{{30,}}",
    rf"SG\.{_URL}{{22}}\.{_URL}{{43}}",  # SendGrid
    rf"xkeysib-{_HEX}{{64}}-{_AN}{{16}}",
    rf"{_HEX}{{32}}-us[0-9]{{1,2}}",  # Mailchimp
    rf"key-{_HEX}{{32}}",  # Mailgun
    rf"re_{_AN}{{8}}_{_AN}{{20,28}}",  # Resend
    rf"SK{_HEX}{{32}}",  # Twilio
    rf"[0-9]{{8,10}}:AA{_URL}{{33}}",  # Telegram
    rf"[MNO]{_AN}{{23,27}}\.{_URL}{{6}}\.{_URL}{{27,38}}",  # Discord
    rf"EAA{_AN}{{100,}}",  # Facebook
    r"A{19,22}\w{4,60}%[23][0-9A-F][\w%]{30,}",  # Twitter
)
_SERVICES = (
    rf"[sr]k_(?:live|test|prod)_{_AN}{{16,}}|whsec_{_B64}{{24,}}={{0,2}}",  # Stripe
    rf"sq0(?:atp-{_URL}{{22}}|csp-{_URL}{{43}})",  # Square
    rf"access_token\$(?:production|sandbox)\${_LOW}{{16}}\${_HEX}{{32}}",  # Braintree
    rf"access-(?:sandbox|development|production)-{_UUID}",  # Plaid
    rf"FLWSECK(?:_TEST)?-{_HEX}{{12,32}}-X",
    rf"rzp_(?:live|test)_{_AN}{{14}}",
    r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}",  # Shopify
    rf"EZ[AT]K{_AN}{{54}}",
    rf"shippo_(?:live|test)_{_HEX}{{40}}",
    r"duffel_(?:live|test)_[\w=-]{43}",
    rf"(?:live|test)_{_HEX}{{35}}",  # Lob
    rf"polar_\w{{2,4}}_{_AN}{{40,}}",
    rf"sl\.(?:u\.)?{_URL}{{130,}}",  # Dropbox
    rf"pat{_AN}{{14}}\.{_HEX}{{64}}",  # Airtable
    rf"ntn_[0-9]{{11}}{_AN}{{35}}|secret_{_AN}{{43}}",  # Notion
    rf"lin_(?:api|oauth)_{_AN}{{40,}}",
    rf"fig[dour]{{1,2}}_{_URL}{{40,}}",  # Figma
    rf"PMAK-{_HEX}{{24}}-{_HEX}{{34}}",  # Postman
    rf"pat-(?:na|eu)[0-9]-{_UUID}",  # HubSpot
    rf"sk\.eyJ{_AN}{{60,}}\.{_URL}{{22}}",  # Mapbox
    rf"fio-u-{_URL}{{64}}",
    rf"rdme_{_LOW}{{70}}",
    rf"tfp_{_URL}{{40,59}}",
    rf"CFPAT-{_URL}{{43}}",
    rf"aio_{_AN}{{28}}",
    rf"p8e-{_LOW}{{32}}",
    rf"s-s4t2(?:ud|af)-{_HEX}{{64}}",
    rf"ak_{_AN}{{26,30}}",
    r"00[\w-]{40}",  # Okta
    rf"eyJ{_URL}{{10,}}\.eyJ{_URL}{{10,}}\.{_URL}{{16,}}",  # a signed JSON web token
)
_HASHES = (
    r"\$2[abxy]\$[0-9]{2}\$[./0-9A-Za-z]{53}",  # hashes of passwords, as crypt(5) has them
    r"\$(?:1|5|6|apr1)\$(?:rounds=[0-9]+\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{22,86}",
    r"\$y\$[./0-9A-Za-z]+\$[./0-9A-Za-z]+\$[./0-9A-Za-z]{43}",
    r"\$argon2(?:id|i|d)\$v=[0-9]+\$[mtp=,0-9]+\$[0-9A-Za-z+/]+\$[0-9A-Za-z+/]+",
    rf"pbkdf2_sha(?:1|256)\$[0-9]+\${_AN}+\${_B64}+=",
)
_FORMATS = _CLOUDS + _CODE_AND_PACKAGES + _MODELS + _MESSAGES + _SERVICES
# A token begins where a word begins; an escape may stand before it ("\nghp_…", "%3Dghp_…"), or a
# terminal's colour.
_ESCAPES = r"\\[nrt]|%[0-9A-F]{2}|/bot|(?:\x1b|\\(?:x1b|033|e|u001b))\[[0-9;]{1,12}m"
_TOKEN = Pattern(rf"(?:\b|{_ESCAPES})(?:{'|'.join(_FORMATS)})|{'|'.join(_HASHES)}")
_BEFORE_TOKEN = re.compile(_ESCAPES)
# Tokens with a mark in the middle or at the end: the mark, the number of characters before it, and
# the whole pattern. The mark is searched first: an automaton for a token that may begin anywhere in
# a long run would have too many states.
_MARKED_INSIDE = tuple(
    (mark, before, re.compile(pattern))
    for mark, before, pattern in (
        ("Q~", 4, r"[\w.~-]{3}[0-9]Q~[\w.~-]{31,34}"),  # Azure's applications
        ("AZDO", 76, rf"{_AN}{{76}}AZDO{_AN}{{4}}"),
        ("AzFu", 44, rf"{_URL}{{44}}AzFu{_URL}{{6}}=="),
        ("AzCa", 33, rf"{_AN}{{33}}AzCa{_B64}{{4,8}}={{0,2}}"),
        ("AzSe", 42, rf"{_AN}{{42}}AzSe{_B64}{{4,8}}={{0,2}}"),
        ("ACDb", 76, rf"{_B64}{{76}}ACDb{_B64}{{6}}=="),
        ("+ASt", 76, rf"{_B64}{{76}}\+ASt{_B64}{{6}}=="),
        (".atlasv1.", 14, rf"{_AN}{{14}}\.atlasv1\.[\w=-]{{60,70}}"),  # Terraform
        ("_mmk", 36, rf"{_AN}{{6}}_{_AN}{{29}}_mmk"),  # MaxMind
    )
)
_OKTA = "00"  # too weak a mark, so it counts only in a text that mentions Okta
_BASE64_SIGNS, _BASE64_ENDS = frozenset("+/"), frozenset("+/=")


def find(text: str, data: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of the tokens in `text`."""
    for start, end in _TOKEN.spans(data):
        if escape := _BEFORE_TOKEN.match(text, start):
            start = escape.end()
        if not _is_other(text, start, end):
            yield start, end
    for mark, before, pattern in _MARKED_INSIDE:
        at = text.find(mark)
        while at >= 0:
            if found := pattern.match(text, max(0, at - before)):
                yield found.span()
            at = text.find(mark, at + len(mark))


def _is_other(text: str, start: int, end: int) -> bool:
    """Return whether something that looks like a token is an example, or part of a longer run."""
    before, token, behind = text[start - 1 : start], text[start:end], text[end : end + 1]
    if behind.isalnum() or (before in _BASE64_SIGNS and behind in _BASE64_ENDS):
        return True
    if token.startswith(_OKTA):
        return not any(name in text for name in ("okta", "Okta", "OKTA", "SSWS"))
    return is_blank(token)
