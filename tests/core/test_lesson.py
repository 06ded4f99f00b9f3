"""The lesson's own settings give the lesson's own arrays, every one of them, to 1e-12."""

from typing import Any

import numpy as np

from core import draws
from core.attention import self_attention
from core.block import transformer_block
from core.positional import sinusoidal

Listing = dict[str, Any]


def assert_equal_to_lesson(computed: dict[str, np.ndarray], listing: Listing) -> None:
    assert set(computed) == set(listing) - {"settings"}, "an array of the lesson is not compared"
    for name, array in computed.items():
        expected = np.array(listing[name])
        assert array.shape == expected.shape, name
        np.testing.assert_allclose(array, expected, rtol=0, atol=1e-12, err_msg=name)


def test_self_attention(lesson: Listing) -> None:
    settings = lesson["self_attention"]["settings"]
    x = draws.tokens(settings["n_tokens"], settings["d_model"], settings["seed"])
    w = draws.attention_weights(settings["d_model"], settings["seed"], settings["weight_scale"])
    result = self_attention(x, w.w_q, w.w_k, w.w_v)
    assert_equal_to_lesson(
        {
            "X": x,
            "W_q": w.w_q,
            "W_k": w.w_k,
            "W_v": w.w_v,
            "Q": result.queries,
            "K": result.keys,
            "V": result.values,
            "scores": result.scaled,  # the lesson calls the scores so after the division by √d_k
            "weights": result.weights,
            "output": result.output,
        },
        lesson["self_attention"],
    )


def test_positional_encoding(lesson: Listing) -> None:
    settings = lesson["positional_encoding"]["settings"]
    encoding = sinusoidal(settings["n_positions"], settings["d_model"])
    assert_equal_to_lesson({"pe": encoding}, lesson["positional_encoding"])


def test_block(lesson: Listing) -> None:
    settings = lesson["block"]["settings"]
    assert (settings["heads"], settings["norm"], settings["activation"]) == (1, "post", "relu")
    x = draws.tokens(settings["n_tokens"], settings["d_model"], settings["seed"])
    attention, feed = draws.block_weights(
        settings["d_model"], settings["d_ff"], settings["seed"], settings["weight_scale"]
    )
    block = transformer_block(x, attention, feed)
    heads = block.multi_head.heads
    assert_equal_to_lesson(
        {
            "x": x,
            "W_q": attention.w_q,
            "W_k": attention.w_k,
            "W_v": attention.w_v,
            "Q": heads.queries[0],
            "K": heads.keys[0],
            "V": heads.values[0],
            "attn_out": block.attention.computed,
            "x_after_attn": block.attention.left,
            "W1": feed.w_1,
            "b1": feed.b_1,
            "W2": feed.w_2,
            "b2": feed.b_2,
            "ff_out": block.feed_forward.computed,
            "block_output": block.output,
        },
        lesson["block"],
    )
