"""A sentence into tokens: words and punctuation marks of any script."""

import unicodedata
from dataclasses import dataclass

from core.checks import at_least

MAX_TOKENS = 64

# Scripts that are written without spaces: each character (with its marks) is a token.
_WITHOUT_SPACES = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # 々 and other signs among Han
    (0x3040, 0x312F),  # Hiragana, Katakana, Bopomofo
    (0x31F0, 0x31FF),  # Katakana extensions
    (0x3400, 0x4DBF),  # Han
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0xFF66, 0xFF9F),  # narrow Katakana
    (0x20000, 0x3FFFF),
)
_JOINER = "\u200d"  # joins emoji into one picture, and letters in some scripts
# Invisible characters that belong to the token in which they stand and make none of their own: joiners, soft hyphen,
# fillers of Hangul and Khmer, variation selectors, the letters that spell the flags of England, Scotland and Wales.
_INVISIBLE = frozenset(
    [_JOINER, *"\u200c\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0"]
    + [chr(code) for low, high in ((0xFE00, 0xFE0F), (0xE0020, 0xE01EF)) for code in range(low, high + 1)]
)
_BRAILLE_SPACE = "\u2800"
_AFTER_CONSONANT = "\u0e33\u0eb3"  # the vowels am of Thai and Lao are letters to Unicode, and never stand alone
_SKIN_TONES = range(0x1F3FB, 0x1F400)
_FLAG_LETTERS = range(0x1F1E6, 0x1F200)
_INSIDE_WORD = "'’"  # don't
_INSIDE_NUMBER = "-./:,"  # 2026-11-29, 3.14


@dataclass(frozen=True)
class Tokens:
    """The tokens kept of a sentence, as typed, and how many more there were."""

    tokens: tuple[str, ...]
    left_out: int


def tokenize(text: str, limit: int = MAX_TOKENS) -> Tokens:
    """Split a text into words, numbers and punctuation marks, and keep the first `limit` of them.

    The text is brought to Unicode's form NFC first, so that an accent typed in two ways gives one word. White space
    and invisible control characters separate. Nothing is interpreted: `<b>`, `$x$` and `*a*` are the characters they
    are made of.

    Raises:
        ValueError: a limit below 0.
    """
    at_least("limit", limit, 0)
    found: list[list[str]] = []  # each token as its characters
    joined = False  # may the next character continue the last token?
    # In pieces: normalising takes time with the square of a run of accents, and a reader may paste a page of them.
    pieces = (text[start : start + 1000] for start in range(0, len(text), 1000))
    text = "".join(unicodedata.normalize("NFC", piece) for piece in pieces)
    for before, character, after in zip(" " + text, text, text[1:] + " ", strict=False):
        if _is_separator(character) or (character in _INVISIBLE and not joined):
            joined = False
        elif joined and _continues(found[-1], before, character, after):
            found[-1].append(character)
        else:
            found.append([character])
            joined = True
    return Tokens(tuple("".join(token) for token in found[:limit]), max(0, len(found) - limit))


def _is_separator(character: str) -> bool:
    if character in _INVISIBLE:
        return False
    return character.isspace() or character == _BRAILLE_SPACE or unicodedata.category(character) in ("Cc", "Cf", "Cs")


def _continues(token: list[str], before: str, character: str, after: str) -> bool:
    """Whether `character`, which stands between `before` and `after`, belongs to `token`, which ends with `before`."""
    if unicodedata.category(character)[0] == "M" or character in _INVISIBLE or ord(character) in _SKIN_TONES:
        return True
    if before == _JOINER or character in _AFTER_CONSONANT:
        return True
    if ord(before) in _FLAG_LETTERS and ord(character) in _FLAG_LETTERS:
        return len(token) == 1  # two letters make one flag
    if not _is_spaced_word(token[0]):
        return False
    if character in _INSIDE_WORD:
        return before.isalpha() and after.isalpha() and _is_spaced_word(after)
    if character in _INSIDE_NUMBER:
        return before.isdigit() and after.isdigit() and _is_spaced_word(after)
    return _is_spaced_word(character)


def _is_spaced_word(character: str) -> bool:
    """A letter, digit or underscore of a script that puts spaces between words."""
    if character.isascii():
        return character.isalnum() or character == "_"
    code = ord(character)
    return unicodedata.category(character)[0] in "LN" and not any(low <= code <= high for low, high in _WITHOUT_SPACES)
