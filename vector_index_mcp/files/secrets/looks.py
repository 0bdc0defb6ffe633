"""Decides whether a value looks random, like a password, or like ordinary text. Pure.

Callers pass only values of bounded length.
"""

import re

# The pairs of letters that make up 95 % of the pairs in words and identifiers, by their first
# letter (counted in Python's standard library). Of random letters, 38 % of the pairs are of these.
_FOLLOWERS = {
    group[0]: frozenset(group[1:])
    for group in (
        "abcdgiklmnprstuvwxy baeilorsu cacehiklorstu dadeilorsu eabcdefgilmnopqrstvwx faefilortu "
        "gaehilnorsu haeiort iabcdefglmnoprstvxz j keis ladeilostuy mabeimopsu nacdefgiklnopstuv "
        "oabcdfgiklmnoprstuvw paehiloprstuy qu racdefgiklmnoprstuvy sacehilopstuy tacehilmoprstuy "
        "uabcegilmnprst vaei waehinor xceipt ynpst ze"
    ).split()
}
_COMMON = frozenset(first + second for first, rest in _FOLLOWERS.items() for second in rest)
_PIECE = re.compile(r"[A-Za-z0-9]+")
_RUNS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+")
_DIGIT, _LETTER, _HAS_SPACE = re.compile(r"[0-9]"), re.compile(r"[^\W\d_]"), re.compile(r"\s")
_FOUR_FOURS = re.compile(r"[a-z]{4}(?:([ -])[a-z]{4})(?:\1[a-z]{4}){2}")
_PARTS = re.compile(  # possessive, as the loops share characters and could backtrack for long
    r"[A-Za-z]*+[0-9]*+[a-z]{0,2}+(?:[-_.:/@,]++[A-Za-z]*+[0-9]*+[a-z]{0,2}+)++"
)
_TECHNICAL = re.compile(
    r"(?i)[0-9]{4}-[0-9]{2}-[0-9]{2}|0x[0-9a-f]{1,8}$|[0-9]{3,4}x[0-9]{3,4}$|(?:md5|sha|hmac|pbkdf2"
    r"|aes|rsa|ecdsa|bcrypt|scrypt|argon2|ed25519|x25519|tls|pkcs|utf|iso|oauth|base)[-_0-9]"
    r"|[a-z]:\\\\"
)
_EXPRESSION = re.compile(r"\|\||&&|=>|[<>=!]=|\?[^?:]*+:")
_SHORTEST_PASSWORD = 6
_LEAST_RANDOM_PIECE = 10
# The mean length of a run of small letters, capital letters or digits. In random values of all
# three it is 2, of small letters and digits 2.5; in identifiers it is 4 to 6.
_LONGEST_RANDOM_RUN = 2.8
_LONGEST_RUN_OF_PASSWORDS = 2.5
_LONGEST_SCRAMBLED_RUN = 1.7  # of random letters of both sizes and digits, one in ten is longer
_NUMBERED = re.compile(r"(?:[a-z]{4,}[0-9]{1,})+")
_LEAST_NUMBERED = 9
_LEAST_PAIRS = 4
_LEAST_TURNS = 2
_LEAST_TURNING_PIECE = 5
_LEAST_LETTERS = 16  # a shorter piece of small letters alone may be an ordinary name
_MOST_COMMON_PAIRS = 0.72  # the greatest share of common pairs in a random value
_LEAST_DISTINCT = 5
_SPECIAL = frozenset("!#$%^&*~+?@;")

# Values that stand in place of a secret: variables, files, references.
_REFERENCE = re.compile(
    r"[$%<{\[(@!]*\w*[{(<]|\$|%\w+%|%[(s]|<|\{|\[|@[@\w]|#\{|!\w|[~.]{0,2}/(?!\S*[+=])|[a-z][\w+.-]*://"
    r"|(?:arn|vault|op|file|env|ssm|secret|keyring|data|urn|npm|https?|com|org|net):"
    r"|(?:com|org|net|io|system|java|django)\.[a-z]|__\w+__$|\W+$"
)
_PLACEHOLDER = re.compile(
    r"(?i)example|sample|placeholder|dummy|change|replace|your|test|fake|xxxx|redacted|\.\.\."
    r"|undefined|null|\*\*|insert|goes.?here|12345678|abcdef|01234567"
)
_ITS_OWN_NAME = re.compile(r"(?i)passw|secret|token|api[_-]?key|user")
_HUMPS = re.compile(r"[A-Z][a-z]{2,}")  # an identifier has several
_LEAST_REST, _LEAST_RUNS_OF_REST = 9, 4
_FILLING = re.compile(r"[xX0.*_-]{12}$|EXAMPLE|\*\*")
_NAME_LIKE = re.compile(r"[A-Za-z_$][\w$]*(?:(?:\.|->|::|\?\.)[\w$]+)*")


def is_placeholder(value: str) -> bool:
    """Return whether `value` only stands for a secret: a placeholder or a reference."""
    return (
        len(set(value)) < _LEAST_DISTINCT
        or _REFERENCE.match(value) is not None
        or _PLACEHOLDER.search(value) is not None
        or (_ITS_OWN_NAME.search(value) is not None and not _has_more(value))
    )


def _has_more(value: str) -> bool:
    """Return whether a value is mixed enough without its words for one: `hunter2secretpw99`."""
    rest = _ITS_OWN_NAME.sub(" ", value)
    runs = _RUNS.findall(rest)
    is_long_enough = sum(map(len, runs)) >= _LEAST_REST and len(runs) >= _LEAST_RUNS_OF_REST
    is_name = is_name_of_parts(value) or len(_HUMPS.findall(value)) > 1
    return is_long_enough and bool(_DIGIT.search(rest)) and not is_name


def is_blank(token: str) -> bool:
    """Return whether a token of a known format is only an example of the format."""
    return _FILLING.search(token) is not None


def is_random(value: str, least: int) -> bool:
    """Return whether `value` has at least `least` characters and its longest piece is random."""
    if len(value) < least or _TECHNICAL.match(value):
        return False
    longest = max(_PIECE.findall(value), key=len, default="")
    return len(longest) >= min(_LEAST_RANDOM_PIECE, least) and _is_random_piece(longest)


def is_password(value: str) -> bool:
    """Return whether `value`, written as a literal, looks like a password that people choose."""
    if len(value) < _SHORTEST_PASSWORD:
        return False
    if _HAS_SPACE.search(value) or ("(" in value and ")" in value):
        return is_phrase(value)
    if is_name_of_parts(value) or not _LETTER.search(value):
        return False
    return bool(_DIGIT.search(value)) or any(char in _SPECIAL for char in value[:-1])


def is_mixed(value: str) -> bool:
    """Return whether an unquoted `value` is a password rather than a word, name or number."""
    if _FOUR_FOURS.fullmatch(value):
        return _is_uncommon(_RUNS.findall(value))
    is_of_both = _DIGIT.search(value) and _LETTER.search(value)
    if len(value) < _SHORTEST_PASSWORD or not is_of_both or is_name_of_parts(value):
        return False
    if _EXPRESSION.search(value):
        return False
    return is_turning(value) or not _NAME_LIKE.fullmatch(value)


def is_scrambled(value: str) -> bool:
    """Return whether `value` is one piece of small and capital letters and digits, all mixed."""
    if len(value) < _LEAST_RANDOM_PIECE or not _PIECE.fullmatch(value):
        return False
    runs = _RUNS.findall(value)
    has_all = _DIGIT.search(value) and not value.isupper() and not value.islower()
    return bool(has_all) and len(value) <= _LONGEST_SCRAMBLED_RUN * len(runs)


def is_numbered_word(value: str) -> bool:
    """Return whether `value` is words of small letters and numbers, as people choose passwords."""
    return len(value) >= _LEAST_NUMBERED and _NUMBERED.fullmatch(value) is not None


def is_turning(value: str) -> bool:
    """Return whether small letters, capital letters and digits alternate often in `value`."""
    runs, pieces = _RUNS.findall(value), _PIECE.findall(value)
    turns = len(runs) - len(pieces)  # inside of pieces: `a-b-c` has none
    if turns < _LEAST_TURNS or sum(map(len, runs)) > _LONGEST_RUN_OF_PASSWORDS * len(runs):
        return False
    return not _SPECIAL.isdisjoint(value) or (
        turns > _LEAST_TURNS and max(map(len, pieces)) >= _LEAST_TURNING_PIECE
    )


def is_name_of_parts(value: str) -> bool:
    """Return whether `value` is a version, path, date or name, like `eu-west-1a`."""
    return _PARTS.fullmatch(value) is not None or _TECHNICAL.match(value) is not None


def is_phrase(value: str) -> bool:
    """Return whether `value` is a secret with spaces, as Google and WordPress generate them."""
    if _FOUR_FOURS.fullmatch(value):
        return True
    signs = sum(not char.isalnum() for char in value)
    return len(value) >= 40 and 6 * signs >= len(value) and is_turning(value)


def _is_random_piece(piece: str) -> bool:
    if piece.isdecimal():
        return False
    runs = _RUNS.findall(piece)
    if len(piece) <= _LONGEST_RANDOM_RUN * len(runs):
        return True
    return _is_uncommon(runs) and (len(runs) > 1 or len(piece) >= _LEAST_LETTERS)


def _is_uncommon(runs: list[str]) -> bool:
    """Return whether the letters in `runs` follow each other as they do not in words."""
    pairs = [run[at : at + 2].lower() for run in runs for at in range(len(run) - 1)]
    pairs = [pair for pair in pairs if not pair.isdecimal()]
    common = sum(pair in _COMMON for pair in pairs)
    return len(pairs) >= _LEAST_PAIRS and common <= _MOST_COMMON_PAIRS * len(pairs)
