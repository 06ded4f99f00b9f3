"""What the tests of core share."""

from collections.abc import Callable

import pytest


@pytest.fixture
def refusal() -> Callable[[Callable[[], object]], str]:
    """Calls something that must be refused and returns the sentence it is refused with."""

    def sentence_of(call: Callable[[], object]) -> str:
        with pytest.raises(ValueError, match=r"^.+\.$") as caught:
            call()
        sentence = str(caught.value)
        assert ". " not in sentence, "more than one sentence"
        assert "\n" not in sentence
        for words_of_numpy in ("operands", "matmul", "unpack", "inhomogeneous", "ufunc", "axis"):
            assert words_of_numpy not in sentence
        return sentence

    return sentence_of
