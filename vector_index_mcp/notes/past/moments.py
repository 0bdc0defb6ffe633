"""Parses the moments that people write, such as `tuesday` or `2026-11-17 14:00`. Pure.

A day means its end, and a minute means its end, so that changes within that day or minute count.

git can parse dates as well, but it takes everything that it does not understand for "now", such as
`tuesday`, `a week ago` and every typo. This module refuses what it does not understand.
"""

import re
from calendar import monthrange
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone

from vector_index_mcp.errors import SettingsError

_MOST_CHARS = 100
_DAYS = "monday tuesday wednesday thursday friday saturday sunday".split()
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_LONGEST_WITHOUT_A_DAY = 8  # years between two 29ths of February, around 1900 and 2100
_SHORTEST_NAME = 3  # of a day or a month: `tue`
_COUNTS = {
    word: number
    for number, word in enumerate("zero one two three four five six seven eight nine ten".split())
} | {"a": 1, "an": 1}
_EXACT = {"second": 1, "minute": 60, "hour": 3_600}
_MONTHS_IN = {"month": 1, "year": 12}
_NOON, _MIDNIGHT = time(12), time(0)
_END = time(23, 59, 59)

_BEFORE_TIME = re.compile(r"(?<=\d)t(?=\d)")
_DOT_OF_WORDS = re.compile(r"(?<=[a-z])\.|\.(?=[a-z])")
_EXACTLY_AGO = re.compile(r"(\w{1,6}) (second|minute|hour)s? ago")
_ZONE = re.compile(r"(?:(z|utc|gmt)|([+-])(\d{2}):?(\d{2}))\Z")
_TIME = re.compile(
    r"(?:^|(?<=\s))(?:at\s)?(?:(\d{1,2}):(\d{2})(?::(\d{2})(?:\.\d+)?)?\s?([ap]m)?|(\d{1,2})\s?([ap]m)"
    r"|(noon|midnight))(?=$|\s|z|[+-]\d)"
)
_NUMBER_OF_DAY = r"(\d{1,2})(?:st|nd|rd|th)?"


def moment_of(words: str, now: datetime) -> int:
    """Parse a moment; return it in seconds since 1970. A day or minute means its end.

    Args:
        words: The words that a person wrote.
        now: The current local time of that person.

    Raises:
        SettingsError: If the words are no moment.
    """
    try:
        text = _plain(words)
        # In seconds since 1970 an hour is an hour, also where the clock is put forward or back.
        passed = 0 if text == "now" else _exactly_ago(text)
        if passed is not None:
            return int(now.timestamp()) - passed
        return int(_moment(text, now).timestamp())
    except (ValueError, OverflowError, OSError):
        raise SettingsError(
            f"{words[:_MOST_CHARS]!r} cannot be understood as a moment; write a date "
            '(2026-11-17), a date and a time ("2026-11-17 14:00"), yesterday, tuesday, '
            '"3 days ago", or a commit'
        ) from None


def _plain(words: str) -> str:
    """Return `words` in lower case, separated by single blanks."""
    if len(words) > _MOST_CHARS:
        raise ValueError(words)
    text = words.lower().replace(",", " ")
    text = _BEFORE_TIME.sub(" ", text)  # 2026-11-17T14:00
    text = _DOT_OF_WORDS.sub(" ", text)  # 3.days.ago
    return " ".join(text.split())


def _moment(text: str, now: datetime) -> datetime:
    day, at, zone = _parted(text)
    if day:
        found = datetime.combine(_day(day, now.date()), _END if at is None else at)
    elif at is not None:
        found = datetime.combine(now.date(), at)
        if found.replace(second=0) > now.replace(tzinfo=None):  # yesterday, not a future time
            found -= timedelta(days=1)
    else:
        raise ValueError(text)
    return found.replace(tzinfo=zone)


def _exactly_ago(text: str) -> int | None:
    """Return the seconds of "3 hours ago" and the like, up to hours; None for other texts."""
    match = _EXACTLY_AGO.fullmatch(text)
    return _count(match[1]) * _EXACT[match[2]] if match else None


def _parted(text: str) -> tuple[str, time | None, timezone | None]:
    """Split a moment into the words for the day, the time and the zone; either may be missing."""
    match = _TIME.search(text)
    if match is None:
        return text, None, None
    rest, zone = f"{text[: match.start()]} {text[match.end() :]}".strip(), None
    if found := _ZONE.search(rest):
        rest = rest[: found.start()].rstrip()
        minutes = 0 if found[1] else int(f"{found[2]}1") * (int(found[3]) * 60 + int(found[4]))
        zone = timezone(timedelta(minutes=minutes))
    return " ".join(rest.split()), _time(match), zone


def _time(match: re.Match[str]) -> time:
    if match[7]:
        return _NOON if match[7] == "noon" else _MIDNIGHT
    hour, half = int(match[1] or match[5]), match[4] or match[6]
    if half:
        if not 1 <= hour <= 12:
            raise ValueError(match[0])
        hour = hour % 12 + (12 if half == "pm" else 0)
    # "14:00" means that whole minute, so its last second; "2 pm" means the exact hour.
    seconds = int(match[3]) if match[3] else (59 if match[2] else 0)
    return time(hour, int(match[2] or 0), seconds)


# -- days ------------------------------------------------------------------------------------


def _day(text: str, today: date) -> date:
    for pattern, read in _READERS:
        if match := pattern.fullmatch(text):
            return read(match.groups(), today)
    raise ValueError(text)


_Groups = Sequence[str | None]


def _whole(word: str | None) -> int:
    assert word is not None
    return int(word)


def _written(groups: _Groups, _: date) -> date:
    year, month, day = map(_whole, groups)
    return date(year, month, day)


def _written_from_day(groups: _Groups, today: date) -> date:
    return _written(groups[::-1], today)


def _month_and_day(groups: _Groups, today: date) -> date:
    """Return the day; without a year, the last such day that is not after today."""
    name, written_day, year = groups
    month, day = _place(name, _MONTHS) + 1, _whole(written_day)
    if year:
        return date(int(year), month, day)
    for each in range(today.year, today.year - _LONGEST_WITHOUT_A_DAY - 1, -1):
        with suppress(ValueError):
            if (found := date(each, month, day)) <= today:
                return found
    raise ValueError(written_day)


def _weekday_and_date(groups: _Groups, today: date) -> date:
    """Return the day; the weekday before it only has to be one."""
    _place(groups[0], _DAYS)
    return _month_and_day(groups[1:], today)


def _day_and_month(groups: _Groups, today: date) -> date:
    day, name, year = groups
    return _month_and_day((name, day, year), today)


def _near(groups: _Groups, today: date) -> date:
    return today - timedelta(days=groups[0] == "yesterday")


def _weekday(groups: _Groups, today: date) -> date:
    """Return the last such weekday before today."""
    passed = (today.weekday() - _place(groups[0], _DAYS) - 1) % 7 + 1
    return today - timedelta(days=passed)


def _ago(groups: _Groups, today: date) -> date:
    count, unit = groups
    number = _count(count or "a")
    if unit in _MONTHS_IN:
        months = today.year * 12 + today.month - 1 - number * _MONTHS_IN[unit]
        year, month = months // 12, months % 12 + 1
        if not year >= 1:
            raise ValueError(year)
        return date(year, month, min(today.day, monthrange(year, month)[1]))
    return today - timedelta(days=number * (7 if unit == "week" else 1))


def _last(groups: _Groups, today: date) -> date:
    return _ago((None, groups[0]), today)


def _count(word: str) -> int:
    return int(word) if word.isascii() and word.isdigit() else _named_count(word)


def _named_count(word: str) -> int:
    if word not in _COUNTS:
        raise ValueError(word)
    return _COUNTS[word]


def _place(name: str | None, names: Sequence[str]) -> int:
    """Return the index of the first of `names` that begins with `name`."""
    for place, full in enumerate(names):
        if name and len(name) >= _SHORTEST_NAME and full.startswith(name):
            return place
    raise ValueError(name)


_READERS: Sequence[tuple[re.Pattern[str], Callable[[_Groups, date], date]]] = (
    (re.compile(r"(\d{4})-(\d{1,2})-(\d{1,2})"), _written),
    (re.compile(r"(\d{4})/(\d{1,2})/(\d{1,2})"), _written),
    (re.compile(r"(\d{4})(\d{2})(\d{2})"), _written),
    (re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})"), _written_from_day),
    (re.compile(rf"{_NUMBER_OF_DAY} (?:of )?([a-z]{{3,9}})(?: (\d{{4}}))?"), _day_and_month),
    (re.compile(rf"([a-z]{{3,9}}) {_NUMBER_OF_DAY}(?: (\d{{4}}))?"), _month_and_day),
    (
        re.compile(rf"([a-z]{{3,9}}) ([a-z]{{3,9}}) {_NUMBER_OF_DAY}(?: (\d{{4}}))?"),
        _weekday_and_date,
    ),
    (re.compile(r"(today|yesterday)"), _near),
    (re.compile(r"(\w{1,6}) (day|week|month|year)s? ago"), _ago),
    (re.compile(r"last (week|month|year)"), _last),
    (re.compile(r"(?:on |last |on last )?([a-z]{3,9})"), _weekday),
)
