"""core against PyTorch: figures made once by data/make_torch_reference.py, which knows nothing of core."""

import numpy as np
import pytest

from core.attention import cross_attention, entropy, scaled_dot_product_attention, softmax
from core.block import (
    Settings,
    attention_parameters,
    batch_norm,
    block_parameters,
    feed_forward,
    gelu,
    gelu_tanh,
    layer_norm,
    stack,
    transformer_block,
)
from core.draws import AttentionWeights, FeedForwardWeights
from core.multi_head import MultiHead, multi_head_attention
from core.positional import rotate
from core.recurrence import jacobians, reach_of_tokens, rnn

Case = dict[str, np.ndarray]
Reference = dict[str, Case]

ORDERS = {"post": "post-norm", "pre": "pre-norm"}


def assert_equal(actual: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-13)


def settings_of(name: str, case: Case) -> Settings:
    """What a case's name says: order_activation, and _causal."""
    order, activation, *mask = name.split("_")
    return Settings(
        heads=int(case["heads"]),
        order=ORDERS[order],
        activation=activation,
        output_projection=True,
        causal=mask == ["causal"],
    )


def weights_of(case: Case, prefix: str = "") -> tuple[AttentionWeights, FeedForwardWeights]:
    attention = AttentionWeights(*(case[prefix + name] for name in ("w_q", "w_k", "w_v", "w_o")))
    return attention, FeedForwardWeights(*(case[prefix + name] for name in ("w_1", "b_1", "w_2", "b_2")))


def attend(x: np.ndarray, case: Case, heads: int) -> MultiHead:
    return multi_head_attention(
        x,
        case["w_q"],
        case["w_k"],
        case["w_v"],
        case["w_o"],
        heads,
        allowed=case.get("allowed"),
        b_q=case["b_q"],
        b_k=case["b_k"],
        b_v=case["b_v"],
        b_o=case["b_o"],
    )


def test_softmax_of_scores_whose_exponentials_overflow(torch_reference: Reference) -> None:
    case = torch_reference["softmax.large"]
    assert_equal(softmax(case["scores"]), case["weights"])


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain", {}),
        ("causal", {}),
        ("padding", {}),
        ("masked_row", {}),
        ("bias", {}),
        ("no_scaling", {"scaling": False}),
        ("temperature", {"temperature": 2.5}),
        ("cross", {}),
        ("heads", {}),
    ],
)
def test_scaled_dot_product_attention(name: str, options: dict, torch_reference: Reference) -> None:
    case = torch_reference[f"sdpa.{name}"]
    attention = scaled_dot_product_attention(
        case["queries"], case["keys"], case["values"], case.get("allowed"), bias=case.get("bias"), **options
    )
    assert_equal(attention.output, case["output"])


def test_entropy(torch_reference: Reference) -> None:
    case = torch_reference["entropy"]
    assert_equal(entropy(case["weights"]), case["bits"])


@pytest.mark.parametrize("name", ["5_8_1", "5_8_4", "7_12_3", "1_6_6", "6_8_2_causal", "6_8_2_padding"])
def test_multi_head_attention(name: str, torch_reference: Reference) -> None:
    case = torch_reference[f"mha.{name}"]
    multi_head = attend(case["x"], case, heads=len(case["weights"]))
    assert_equal(multi_head.heads.weights, case["weights"])
    assert_equal(multi_head.output, case["output"])


def test_cross_attention(torch_reference: Reference) -> None:
    case = torch_reference["cross"]
    weights = (case[name] for name in ("w_q", "w_k", "w_v"))
    attention = cross_attention(case["x"], case["memory"], *weights)
    assert_equal(attention.weights, case["weights"])
    assert_equal(attention.output @ case["w_o"], case["output"])


@pytest.mark.parametrize("name", ["affine", "lesson", "one_hot"])
def test_layer_norm(name: str, torch_reference: Reference) -> None:
    case = torch_reference[f"layer_norm.{name}"]
    assert_equal(layer_norm(case["x"], case["gain"], case["bias"], float(case["eps"])), case["output"])


def test_batch_norm(torch_reference: Reference) -> None:
    case = torch_reference["batch_norm"]
    assert_equal(batch_norm(case["x"], float(case["eps"])), case["output"])


def test_gelu(torch_reference: Reference) -> None:
    case = torch_reference["gelu"]
    assert_equal(gelu(case["x"]), case["exact"])
    assert_equal(gelu_tanh(case["x"]), case["tanh"])


@pytest.mark.parametrize("name", ["post_relu", "pre_gelu"])
def test_layer_with_every_bias_and_gain(name: str, torch_reference: Reference) -> None:
    """The whole of PyTorch's layer, put together here from core's pieces."""
    case = torch_reference[f"encoder.{name}"]
    settings = settings_of(name, case)
    feed = weights_of(case)[1]

    def norm(x: np.ndarray, number: int) -> np.ndarray:
        return layer_norm(x, case[f"gain_{number}"], case[f"bias_{number}"], float(case["eps"]))

    x = case["x"]
    if settings.order == "pre-norm":
        x = x + attend(norm(x, 1), case, settings.heads).output
        x = x + feed_forward(norm(x, 2), feed, settings.activation)[1]
    else:
        x = norm(x + attend(x, case, settings.heads).output, 1)
        x = norm(x + feed_forward(x, feed, settings.activation)[1], 2)
    assert_equal(x, case["output"])


@pytest.mark.parametrize(
    "name", ["post_relu", "post_gelu", "pre_relu", "pre_gelu", "post_relu_causal", "pre_gelu_causal"]
)
def test_transformer_block(name: str, torch_reference: Reference) -> None:
    case = torch_reference[f"block.{name}"]
    block = transformer_block(case["x"], *weights_of(case), settings_of(name, case))
    assert_equal(block.output, case["output"])


@pytest.mark.parametrize("name", ["post_relu", "pre_relu"])
def test_stack_of_blocks(name: str, torch_reference: Reference) -> None:
    case = torch_reference[f"stack.{name}"]
    weights = [weights_of(case, f"{block}.") for block in range(3)]
    outputs = [block.output for block in stack(case["x"], weights, settings_of(name, case))]
    assert_equal(np.stack(outputs), case["outputs"])


@pytest.mark.parametrize("name", ["1_4", "8_4", "30_6"])
def test_recurrent_network_and_its_jacobians(name: str, torch_reference: Reference) -> None:
    case = torch_reference[f"rnn.{name}"]
    states = rnn(case["x"], case["w_x"], case["w_h"])
    assert_equal(states, case["states"])
    last_first = np.stack(list(jacobians(states, case["w_x"], case["w_h"])))
    assert_equal(last_first[::-1], case["jacobians"])
    assert_equal(reach_of_tokens(states, case["w_x"], case["w_h"]), np.linalg.norm(case["jacobians"], axis=(1, 2)))


@pytest.mark.parametrize("name", ["6_8", "5_2"])
def test_rotary_encoding(name: str, torch_reference: Reference) -> None:
    case = torch_reference[f"rope.{name}"]
    assert_equal(rotate(case["x"], case["positions"]), case["output"])


def test_parameter_counts(torch_reference: Reference) -> None:
    case = torch_reference["parameters"]
    for d_model, _, d_ff, count in case["encoder_layer"].tolist():
        assert block_parameters(d_model, d_ff) == count
    for d_model, _, count in case["attention"].tolist():
        assert attention_parameters(d_model, biases=True) == count
    assert block_parameters(512, 2048) == 3_152_384
