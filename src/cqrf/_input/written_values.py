"""Written values: texts that are dates or numbers in a notation of their own.

Frames keep such texts as text. They are categories until the user says otherwise; what is here
only recognises them. Patterns are also those of RE2, the engine of Arrow.
"""

from __future__ import annotations

import re
from collections.abc import Collection

# Fewer different values than these may well be meant as categories.
MIN_DISTINCT = 10
TIME_OF_DAY = r"(?:[T ]\d{1,2}:.*)?"
ISO_DATE = rf"^\d{{4}}[-/]\d{{1,2}}[-/]\d{{1,2}}{TIME_OF_DAY}$"
# Day and month in either order; groups: the two, the year, the time of day.
TURNED_DATE = rf"^(\d{{1,2}})[/.-](\d{{1,2}})[/.-](\d{{4}})({TIME_OF_DAY})$"
SHORT_DATE = r"^\d{1,2}/\d{1,2}/\d{2}$"  # the century is missing
# 31 Jan 2024, 31-JAN-2024, 31JAN2024, January 31, 2024
_MONTH = "(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
NAMED_DATE = (
    rf"(?i)^(?:\d{{1,2}}[ .-]{{0,2}}{_MONTH}|{_MONTH} \d{{1,2}})[ .,-]{{0,2}}\d{{4}}{TIME_OF_DAY}$"
)
CURRENCIES = "$€£¥"
SPACES = " \u00a0\u2009\u202f"  # those that separate thousands
# Digits with or without separators of thousands, and decimals; the signs around them.
WRITTEN_NUMBER = (
    rf"^[-+]?[{CURRENCIES}]?[{SPACES}]?[-+]?"
    rf"(?:\d{{1,3}}(?:[,.'’{SPACES}]\d{{3}})+|\d+)?(?:[.,]\d+)?"
    rf"[{SPACES}]?[%{CURRENCIES}]?$"
)


def describe_written(texts: Collection[str]) -> str | None:
    """``"dates"`` or ``"numbers"`` if every one of many texts looks like one, else None.

    Whole numbers are no sign: codes are written like that, too.
    """
    stripped = [text.strip() for text in texts]
    if len(stripped) < MIN_DISTINCT:
        return None
    if all(_is_date(text) for text in stripped):
        return "dates"
    are_numbers = all(re.match(WRITTEN_NUMBER, text) and _has_digit(text) for text in stripped)
    return "numbers" if are_numbers and not all(map(str.isdigit, stripped)) else None


def _is_date(text: str) -> bool:
    if any(re.match(pattern, text) for pattern in (ISO_DATE, SHORT_DATE, NAMED_DATE)):
        return True
    turned = re.match(TURNED_DATE, text)
    if turned is None:
        return False
    one, two = sorted((int(turned[1]), int(turned[2])))
    return 1 <= one <= 12 and two <= 31


def _has_digit(text: str) -> bool:
    return any(map(str.isdigit, text))
