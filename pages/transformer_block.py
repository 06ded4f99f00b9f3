"""The transformer block: attention and feed-forward, each with a residual connection and a norm, once or stacked."""

import numpy as np
import streamlit as st

from core import block, draws, gradients
from ui import block_figures, block_words, controls, experiments, figures, page, predict
from ui.page_controls import CONTROLS
from ui.questions import transformer_block as questions
from ui.scripts.transformer_block import arrays as block_arrays

page.start(
    "transformer_block",
    "One block takes a row of numbers per token and gives back a row of the same length. Follow the arrows down.",
)
settings = controls.open_page("transformer_block", CONTROLS["transformer_block"])
experiments.offer("transformer_block", settings)
controls.teaching_buttons()

n, d_model, d_ff, blocks = settings.n_tokens, settings.d_model, settings.d_ff, settings.blocks
kind = block.Settings(
    heads=settings.heads,
    residual=settings.residual,
    norm=settings.norm,
    order=settings.order,
    activation=settings.activation.lower(),
    output_projection=settings.output_projection,
    causal=settings.causal,
)
x = draws.words(settings.tokens, d_model, settings.seed) if settings.tokens else draws.tokens(n, d_model, settings.seed)
weights = [draws.block_weights(d_model, d_ff, settings.seed, settings.weight_scale, block=i) for i in range(blocks)]
stack = list(block.stack(x, weights, kind))
shown = stack[settings.block - 1]
tensors = block.tensors(n, d_model, d_ff, kind)
parameters = sum(tensor.parameters for tensor in tensors)
multiply_adds = sum(tensor.multiply_adds for tensor in tensors)
pre_norm = kind.norm and kind.order == "pre-norm"
stack_output = block.final_norm(stack[-1].output, kind)
tokens = figures.token_names(settings.tokens, n)
dimensions = [str(i) for i in range(1, d_model + 1)]

# The block with all its sizes
if page.section():
    left, right = page.columns([3, 2])
    with left:
        page.figure(
            block_figures.block_diagram(n, d_model, d_ff, kind, blocks=blocks),
            key="diagram",
            alt=block_words.diagram(n, d_model, d_ff, kind, blocks),
            follows=False,
        )
    with right:
        st.metric("Parameters in one block", f"{parameters:,}")
        st.metric("Multiply-adds in one block", f"{multiply_adds:,}")
        page.findings(*block_words.size_findings(n, d_model, d_ff, kind, blocks))
        st.caption(
            "The lane at the right is the residual connection: it carries a sublayer's input past it, to the plus."
            if kind.residual
            else "There are no residual connections: everything goes through the sublayers."
        )
        st.caption(
            "Shapes are tokens × dimensions."
            + " Where there are three numbers: heads × tokens × dimensions of a head." * (kind.heads > 1)
        )

# What flows through it
if page.section("What flows through it"):
    settings.draw("block")
    maps = block_figures.stages(shown, kind, stack_output if pre_norm and settings.block == blocks else None)
    page.figure(
        block_figures.stage_maps(maps, tokens),
        key="stages",
        alt=f"Activations of block {settings.block} of {blocks}, {n} tokens by {d_model} dimensions: "
        f"{'; '.join(maps)}.",
        follows=True,
    )
    page.findings(block_words.largest_finding(maps))
    st.caption("Random weights: the numbers mean nothing yet. What each step does to them is what to see.")
    for line in block_words.equations(n, d_model, d_ff, kind):
        st.latex(line)

# What the norm does
pairs = block.norm_inputs_and_outputs(shown, kind)
before, after = pairs[settings.layer_norm == "second"] if pairs else (shown.attention.added, None)
if page.section("What LayerNorm does to each token"):
    settings.draw("layer_norm")
    if after is not None:
        page.figure(
            block_figures.mean_and_spread_chart(before, after, tokens),
            key="norm_chart",
            alt=block_words.norm_finding(before, after),
        )
        page.findings(block_words.norm_finding(before, after))
    else:
        page.findings("LayerNorm is off: nothing brings a token's numbers back to mean 0 and spread 1.")
    st.latex(r"\text{LN}(v) = \frac{v - \text{mean}(v)}{\sqrt{\text{variance}(v) + 10^{-6}}}")

if page.section("Which way the mean is taken"):
    layer, batch = block.layer_norm(before), block.batch_norm(before)
    before_what = f"that go into the {settings.layer_norm} LayerNorm" if pairs else "that leave the attention sublayer"
    page.figure(
        block_figures.norm_axes(layer, batch, tokens),
        key="norm_axes",
        alt=f"The same matrix after LayerNorm and after BatchNorm. {block_words.axes_finding(layer, batch)}",
    )
    page.findings(block_words.axes_finding(layer, batch))
    st.markdown(
        f"Both maps start from the same numbers: those {before_what}. "
        "The frame shows which numbers are averaged together. "
        "LayerNorm takes one token at a time. BatchNorm takes one dimension of all tokens, so what becomes of a token "
        "depends on the others. (Its batch is usually many sequences; here it is the tokens of this one.)"
    )

# Every tensor
if page.section("Every tensor of one block"):
    st.dataframe(
        block_figures.tensor_table(tensors),
        hide_index=True,
        height="content",
        column_config={
            "shape": st.column_config.Column(width="small"),
            "parameters": st.column_config.NumberColumn(format="localized", width="small"),
            "multiply-adds": st.column_config.NumberColumn(format="localized", width="small"),
        },
        alt="Every tensor with its shape, parameters and multiply-adds",
    )

# Many blocks
if page.section("Block upon block"):
    settings.draw("compare")
    depth = block.depth([x, *(each.output for each in stack)])
    depths = {"this setting": depth}
    if settings.compare:
        depths = {}
        for name, other in block_words.arrangements(kind).items():
            depths[name] = (
                depth if other == kind else block.depth([x, *(b.output for b in block.stack(x, weights, other))])
            )
    final = float(block.depth([stack_output]).spread[0]) if pre_norm else None
    page.figure(
        block_figures.depth_chart(depths, settings.block, final),
        key="depth_chart",
        alt=f"Spread and alikeness over {blocks} blocks. {block_words.spread_finding(depth, final)}",
    )
    page.findings(
        block_words.spread_finding(depth, final),
        block_words.alikeness_finding(depth, n),
        *([block_words.comparison(depths)] if settings.compare else []),
    )
    st.caption(
        "Spread: the standard deviation of a token's numbers, averaged over the tokens. "
        "Alikeness: the cosine of the angle between two tokens, averaged over all pairs; 1 means the same direction. "
        "Each block has random weights of its own." + " The dotted line marks the block shown above." * (blocks > 1)
    )

# The way back. Last, for with many blocks and heads it takes longest: all else is drawn before.
if page.section("How the gradient gets back"):
    st.markdown(
        "Training asks of every parameter: how does the loss, which says how wrong the model is, change with it? The "
        "answer is its gradient. It is worked out backwards, from the output to block 1. Where it vanishes, a block no "
        "longer told what to change."
    )
    lengths = {}
    if blocks > 1:
        direction = gradients.unit_direction(n, d_model, settings.seed)
        arranged = [gradients.block_weights(*each) for each in weights]
        for name, other in block_words.with_and_without(kind).items():
            lengths[name] = gradients.gradient_lengths(x, arranged, other, direction)[:blocks]
        page.figure(
            block_figures.gradient_chart(lengths),
            key="gradient_chart",
            alt=f"The gradient at the input of {blocks} blocks. {' '.join(block_words.gradient_findings(lengths))}",
        )
        page.findings(*block_words.gradient_findings(lengths))
        st.caption(
            "Read it from right to left, as the gradient goes. At each plus, a residual connection hands it on as it "
            "is, past the sublayer. Length: the square root of the sum of all squares. "
            f"All four lines have the same random weights; where there is a norm, it is {kind.order}. The loss adds up "
            "the output's numbers, each times a fixed random number, so that the gradient starts with length 1."
        )
    else:
        st.markdown("With one block there is no way to follow. Choose two or more *Stacked blocks*.")

predict.offer(lambda: questions.ask(settings, kind, x, weights, tokens))

page.notice(
    "A block changes the numbers and keeps the shape. This is why blocks can be stacked.",
    "Switch off the residual connections: the lane beside each sublayer is gone, and what goes in reaches the output "
    "only through the sublayers. Compare the two curves under *Block upon block*.",
    "Try 24 blocks with post-norm, with pre-norm and without a norm. See where the spread goes, and how much of the "
    "gradient gets back.",
    "Nothing is trained here. The page *Training lab* trains a small transformer: take its residual connections or "
    "its norm away there, and see whether it still learns.",
)
if not page.presenting():
    tables = {
        f"Output of block {settings.block}": page.frame(shown.output, tokens, dimensions),
        "Depth (0: the input)": block_figures.depth_table(depth),
    } | (
        {"Length of the gradient at the input of each block": block_figures.gradient_table(lengths)} if lengths else {}
    )
    page.numbers(tables)
    page.take_away(
        settings,
        block_arrays(shown, *weights[settings.block - 1])
        | {
            "x": x,
            "states": np.stack([x, *(each.output for each in stack)]),
            "stack_output": stack_output,
            "norm_in": before,
            "layer_normed": layer,
            "batch_normed": batch,
            "spread": depth.spread,
            "alike": depth.alikeness,
        }
        | dict(zip(("mean_in", "spread_in"), block.mean_and_spread(before), strict=True))
        | dict(zip(("mean_out", "spread_out"), block.mean_and_spread(layer), strict=True))
        | ({"compared_spread": np.stack([each.spread for each in depths.values()])} if settings.compare else {})
        | ({"compared_alike": np.stack([each.alikeness for each in depths.values()])} if settings.compare else {})
        | ({"gradient_lengths": np.stack(list(lengths.values()))} if lengths else {}),
        tables,
    )
    page.source(
        block.transformer_block,
        block.feed_forward,
        block.layer_norm,
        *((gradients.gradient_lengths, gradients.block_backward) if lengths else ()),
    )
page.foot("transformer_block")
