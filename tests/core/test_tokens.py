"""Sentences in any script become the words and marks they are typed with."""

import unicodedata
from collections.abc import Callable

import numpy as np
import pytest

from core.tokens import MAX_TOKENS, tokenize

Refusal = Callable[[Callable[[], object]], str]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("dog bites man", ["dog", "bites", "man"]),
        ("the cat saw the dog.", ["the", "cat", "saw", "the", "dog", "."]),
        ("Stop!?", ["Stop", "!", "?"]),
        ("snake_case x2 x²", ["snake_case", "x2", "x²"]),
        # apostrophes inside words, quotes around them
        ("don't rock’n’roll l'été", ["don't", "rock’n’roll", "l'été"]),
        ("'hello' dogs' 'tis", ["'", "hello", "'", "dogs", "'", "'", "tis"]),
        # dates, times and numbers whole; their signs elsewhere apart
        ("2026-11-29 29.11.2026 10:30 3.14 1,000 1/2", ["2026-11-29", "29.11.2026", "10:30", "3.14", "1,000", "1/2"]),
        ("-5 3. a-b 1-a ٣.٤", ["-", "5", "3", ".", "a", "-", "b", "1", "-", "a", "٣.٤"]),
        # nothing is interpreted
        ("<script>alert(1)</script>", ["<", "script", ">", "alert", "(", "1", ")", "<", "/", "script", ">"]),
        ("$x$ *a* :red[x] [MASK]", ["$", "x", "$", "*", "a", "*", ":", "red", "[", "x", "]", "[", "MASK", "]"]),
        # scripts with spaces
        ("Привет, м'ята", ["Привет", ",", "м'ята"]),
        ("שלום עולם", ["שלום", "עולם"]),
        ("مرحبا، كيف؟", ["مرحبا", "،", "كيف", "؟"]),
        ("می‌خواهم", ["می‌خواهم"]),  # a zero-width non-joiner inside a Persian word
        ("क्षि नमस्ते", ["क्षि", "नमस्ते"]),
        ("한국어 문장", ["한국어", "문장"]),
        # scripts without spaces: by character, with its marks
        ("我爱你。", ["我", "爱", "你", "。"]),
        ("人々abc你'好a'好1.๓", ["人", "々", "abc", "你", "'", "好", "a", "'", "好", "1", ".", "๓"]),
        ("カタカナ ﾃｽﾄ", ["カ", "タ", "カ", "ナ", "ﾃ", "ｽ", "ﾄ"]),
        ("น้ำดี", ["น้ำ", "ดี"]),
        # emoji clusters
        ("🙂🙂 👩‍👩‍👧 👍🏽 ❤️‍🔥 1️⃣", ["🙂", "🙂", "👩‍👩‍👧", "👍🏽", "❤️‍🔥", "1️⃣"]),
        ("🇩🇪🇫🇷🇯", ["🇩🇪", "🇫🇷", "🇯"]),
        (
            "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f!",
            ["🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "!"],
        ),
        # white space of all kinds and invisible characters separate
        ("a\u00a0b\u3000c\nd\te\u200bf\x00g", list("abcdefg")),
        ("\u200edog\u200f \ufeffcat", ["dog", "cat"]),
        ("co\u00adop", ["co\u00adop"]),  # a soft hyphen does not
    ],
)
def test_text_into_tokens(text: str, tokens: list[str]) -> None:
    assert tokenize(text).tokens == tuple(tokens)
    assert tokenize(text).left_out == 0


@pytest.mark.parametrize(
    "text", ["", " ", " \t\n\u3000\u00a0", "\u200b\u200d\u200c\u2060\ufeff", "\ufe0f", "\u3164 \u2800 \u00ad", "\ud800"]
)
def test_nothing_to_see_gives_no_tokens(text: str) -> None:
    assert tokenize(text).tokens == ()
    assert tokenize(text).left_out == 0


def test_an_accent_typed_in_two_ways_gives_one_word() -> None:
    composed, combining = "caf\u00e9", "cafe\u0301"
    assert tokenize(composed).tokens == tokenize(combining).tokens == ("caf\u00e9",)


@pytest.mark.parametrize(
    ("text", "found"),
    [("ab " * 33_334, 33_334), ("!" * 100_000, 100_000), ("犬" * 100_000, 100_000), ("a" * 100_000, 1)],
)
def test_a_hundred_thousand_characters(text: str, found: int) -> None:
    result = tokenize(text)
    assert len(result.tokens) == min(found, MAX_TOKENS)
    assert result.left_out == found - len(result.tokens)


def test_limit() -> None:
    assert tokenize("a b c", limit=2).tokens == ("a", "b")
    assert tokenize("a b c", limit=2).left_out == 1
    assert tokenize("a b c", limit=3).left_out == 0
    assert tokenize("a b c", limit=0).tokens == ()


@pytest.mark.parametrize("limit", [-1, 1.5])
def test_refuses(limit: int, refusal: Refusal) -> None:
    assert f"limit must be a whole number of at least 0, not {limit}" in refusal(lambda: tokenize("a b", limit))


# --- any text --------------------------------------------------------------------------------------------------------

# Where scripts, marks, joiners, flags, emoji and controls live.
ALPHABET = [
    chr(code)
    for low, high in (
        (0x00, 0x17F),
        (0x300, 0x36F),
        (0x591, 0x6FF),
        (0x900, 0x97F),
        (0xE00, 0xEFF),
        (0x1100, 0x11FF),
        (0x2000, 0x206F),
        (0x2800, 0x2803),
        (0x3000, 0x30FF),
        (0x4E00, 0x4E20),
        (0xAC00, 0xAC20),
        (0xD800, 0xD803),
        (0xFE00, 0xFE0F),
        (0x1F1E6, 0x1F1FF),
        (0x1F3F0, 0x1F400),
        (0xE0060, 0xE007F),
    )
    for code in range(low, high + 1)
] + list("ab 'ab 12-.\u200d\u200d")


def texts(number: int) -> list[str]:
    random = np.random.default_rng(20261129)
    return ["".join(random.choice(ALPHABET, random.integers(1, 60))) for _ in range(number)]


def is_unseen(character: str) -> bool:
    """White space, and characters without a picture of their own."""
    return (
        character.isspace()
        or unicodedata.category(character) in ("Cc", "Cf", "Cs")
        or character in "\u034f\u115f\u1160\u2800"
        or 0xFE00 <= ord(character) <= 0xFE0F
    )


def seen(text: str) -> str:
    return "".join(character for character in text if not is_unseen(character))


def test_tokens_of_any_text_are_the_text_without_what_separates_it() -> None:
    for text in texts(400):
        assert seen("".join(tokenize(text, 100).tokens)) == seen(unicodedata.normalize("NFC", text)), ascii(text)


def test_tokens_of_any_text_can_be_seen_and_stand_in_it_in_order() -> None:
    for text in texts(400):
        normal, start = unicodedata.normalize("NFC", text), 0
        for token in tokenize(text, 100).tokens:
            assert seen(token), ascii(text)
            assert not any(character.isspace() for character in token), ascii(text)
            start = normal.index(token, start) + len(token)


def test_the_limit_cuts_any_text_and_counts_the_rest() -> None:
    for text in texts(100):
        everything = tokenize(text, 100).tokens
        few = tokenize(text, 3)
        assert few.tokens == everything[:3]
        assert len(few.tokens) + few.left_out == len(everything)


def test_tokens_of_any_text_do_not_fall_apart_further() -> None:
    """A kept token typed alone is one token again, so that a word keeps its vector."""
    for text in texts(400):
        for token in tokenize(text, 100).tokens:
            assert tokenize(token).tokens == (token,), ascii(token)


def test_a_page_of_stacked_accents_is_split_like_a_short_run():
    stack = "a" + "\u0316\u0301" * 3000  # marks of two classes, which normalising has to sort

    assert len(tokenize(stack).tokens) == 1
    assert tokenize(stack + " b").tokens[1] == "b"
