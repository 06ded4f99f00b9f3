"""The transformer block: attention and feed-forward, each with a residual connection and a norm, once or stacked."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
import streamlit as st

from core import block, draws, gradients
from ui import block_figures, block_words, controls, figures, page, predict
from ui.control_kinds import Settings
from ui.page_controls import CONTROLS
from ui.questions import transformer_block as questions
from ui.scripts.transformer_block import arrays as block_arrays

SEVERAL = 6  # blocks, enough to see where a gradient goes
Weights = list[tuple[draws.AttentionWeights, draws.FeedForwardWeights]]


@dataclass(frozen=True)
class Shown:
    """What the page shows."""

    settings: Settings
    kind: block.Settings
    x: np.ndarray
    tokens: list[str]

    @cached_property
    def lower_weights(self) -> Weights:
        """Of the block on show and those below it."""
        return draw_weights(self.settings, range(self.settings.block))

    @cached_property
    def lower(self) -> list[block.Block]:
        """The block on show and those below it."""
        return list(block.stack(self.x, self.lower_weights, self.kind))

    @property
    def one(self) -> block.Block:
        """The one on show."""
        return self.lower[-1]

    @property
    def pre_norm(self) -> bool:
        """Whether there is a norm before each sublayer, and a final one."""
        return self.kind.norm and self.kind.order == "pre-norm"

    @cached_property
    def weights(self) -> Weights:
        """Of all blocks."""
        above = range(self.settings.block, self.settings.blocks)
        return [*self.lower_weights, *draw_weights(self.settings, above)]

    @cached_property
    def stack(self) -> list[block.Block]:
        """All blocks."""
        return [*self.lower, *block.stack(self.one.output, self.weights[len(self.lower) :], self.kind)]

    @property
    def stack_output(self) -> np.ndarray:
        """What leaves the last block, and the final norm if there is one."""
        return block.final_norm(self.stack[-1].output, self.kind)

    @property
    def norm(self) -> tuple[np.ndarray, np.ndarray | None]:
        """What goes into the norm on show, and what comes out; without norms what leaves attention, and None."""
        pairs = block.norm_inputs_and_outputs(self.one, self.kind)
        return pairs[self.settings.layer_norm == "second"] if pairs else (self.one.attention.added, None)

    @cached_property
    def depth(self) -> block.Depth:
        """Through the stack, as set."""
        return self.depth_of(self.stack)

    @cached_property
    def depths(self) -> dict[str, block.Depth]:
        """Through the stack by arrangement: as set alone, or beside the others."""
        if not self.settings.compare:
            return {"this setting": self.depth}
        return {
            name: self.depth if kind == self.kind else self.depth_of(block.stack(self.x, self.weights, kind))
            for name, kind in block_words.arrangements(self.kind).items()
        }

    def depth_of(self, blocks: Iterable[block.Block]) -> block.Depth:
        """Through these blocks."""
        return block.depth([self.x, *(each.output for each in blocks)])

    @cached_property
    def lengths(self) -> dict[str, np.ndarray]:
        """The lengths of the gradient at the input of each block, with and without residual connections and norms."""
        return self.lengths_from(self.x, block_words.with_and_without(self.kind))

    @cached_property
    def lengths_nearby(self) -> dict[str, np.ndarray]:
        """The same for an input of which each number differs in its last bit, where neither of them holds it steady."""
        kinds = block_words.with_and_without(self.kind).items()
        unsteady = {name: kind for name, kind in kinds if not (kind.residual or kind.norm)}
        return self.lengths_from(np.nextafter(self.x, np.inf), unsteady)

    def lengths_from(self, x: np.ndarray, kinds: Mapping[str, block.Settings]) -> dict[str, np.ndarray]:
        """The lengths of the gradient at the input of each block, for stacks of these kinds by name."""
        direction = gradients.unit_direction(len(x), self.settings.d_model, self.settings.seed)
        arranged = [gradients.block_weights(*each) for each in self.weights]
        return {name: gradients.gradient_lengths(x, arranged, kind, direction)[:-1] for name, kind in kinds.items()}


def draw_weights(settings: Settings, places: Iterable[int]) -> Weights:
    """The weights of the blocks at these places of the stack, from 0."""
    d_model, d_ff, seed, scale = settings.d_model, settings.d_ff, settings.seed, settings.weight_scale
    return [draws.block_weights(d_model, d_ff, seed, scale, block=place) for place in places]


def compute(settings: Settings) -> Shown:
    """What goes into the first block, and of what kind the blocks are; the rest is computed where it is asked for."""
    n, d_model, seed = settings.n_tokens, settings.d_model, settings.seed
    kind = block.Settings(
        heads=settings.heads,
        residual=settings.residual,
        norm=settings.norm,
        order=settings.order,
        activation=settings.activation.lower(),
        output_projection=settings.output_projection,
        causal=settings.causal,
    )
    x = draws.words(settings.tokens, d_model, seed) if settings.tokens else draws.tokens(n, d_model, seed)
    return Shown(settings, kind, x, figures.token_names(settings.tokens, n))


def the_block(settings: Settings, shown: Shown) -> None:
    """The block with all its sizes."""
    if not page.section():
        return
    n, d_model, d_ff, kind, blocks = settings.n_tokens, settings.d_model, settings.d_ff, shown.kind, settings.blocks
    tensors = block.tensors(n, d_model, d_ff, kind)
    left, right = page.columns([3, 2])
    with left:
        page.figure(
            block_figures.block_diagram(n, d_model, d_ff, kind, blocks=blocks),
            key="diagram",
            alt=block_words.diagram(n, d_model, d_ff, kind, blocks),
        )
    with right:
        st.metric("Parameters in one block", f"{sum(tensor.parameters for tensor in tensors):,}")
        st.metric("Multiply-adds in one block", f"{sum(tensor.multiply_adds for tensor in tensors):,}")
        page.findings(*block_words.size_findings(n, d_model, d_ff, kind, blocks))
        if not kind.output_projection:
            st.caption(
                "The lesson's block leaves the output projection W_O out. The switch *Output projection W_O* puts it "
                "in."
            )
        st.caption(
            "The lane at the right is the residual connection: it carries a sublayer's input past it, to the plus."
            if kind.residual
            else "There are no residual connections: everything goes through the sublayers."
        )
        st.caption(
            "Shapes are tokens × dimensions."
            + " Where there are three numbers: heads × tokens × dimensions of a head." * (kind.heads > 1)
        )


def flow(settings: Settings, shown: Shown) -> None:
    """What flows through the block."""
    if not page.section("What flows through it"):
        return
    settings.draw("block")
    n, d_model, place, blocks = settings.n_tokens, settings.d_model, settings.block, settings.blocks
    maps = block_figures.stages(
        shown.one, shown.kind, shown.stack_output if shown.pre_norm and place == blocks else None
    )
    page.figure(
        block_figures.stage_maps(maps, shown.tokens),
        key="stages",
        alt=f"Activations of block {place} of {blocks}, {n} tokens by {d_model} dimensions: {'; '.join(maps)}.",
    )
    page.findings(block_words.largest_finding(maps))
    st.caption("Random weights: the numbers mean nothing yet. What each step does to them is what to see.")
    st.markdown(block_words.feed_forward(d_model, settings.d_ff, shown.kind))
    for line in block_words.equations(n, d_model, settings.d_ff, shown.kind):
        st.latex(line)


def what_the_norm_does(settings: Settings, shown: Shown) -> None:
    """Every token's mean and spread, before a norm and after it."""
    if not page.section("What LayerNorm does to each token"):
        return
    settings.draw("layer_norm")
    before, after = shown.norm
    if after is not None:
        finding = block_words.norm_finding(before, after)
        page.figure(
            block_figures.mean_and_spread_chart(before, after, shown.tokens),
            key="norm_chart",
            alt=finding,
        )
        page.findings(finding)
    else:
        page.findings("LayerNorm is off: nothing brings a token's numbers back to mean 0 and spread 1.")
    st.latex(r"\text{LN}(v) = \frac{v - \text{mean}(v)}{\sqrt{\text{variance}(v) + 10^{-6}}}")


def which_way(settings: Settings, shown: Shown) -> None:
    """LayerNorm beside BatchNorm."""
    if not page.section("Which way the mean is taken"):
        return
    before, after = shown.norm
    layer, batch = block.layer_norm(before), block.batch_norm(before)
    finding = block_words.axes_finding(layer, batch)
    before_what = (
        "that leave the attention sublayer" if after is None else f"that go into the {settings.layer_norm} LayerNorm"
    )
    page.figure(
        block_figures.norm_axes(layer, batch, shown.tokens),
        key="norm_axes",
        alt=f"The same matrix after LayerNorm and after BatchNorm. {finding}",
    )
    page.findings(finding)
    st.markdown(
        f"Both maps start from the same numbers: those {before_what}. "
        "The frame shows which numbers are averaged together. "
        "LayerNorm takes one token at a time. BatchNorm takes one dimension of all tokens, so what becomes of a token "
        "depends on the others. (Its batch is usually many sequences; here it is the tokens of this one.)"
    )


def every_tensor(settings: Settings, shown: Shown) -> None:
    """The table of tensors."""
    if page.section("Every tensor of one block"):
        tensors = block.tensors(settings.n_tokens, settings.d_model, settings.d_ff, shown.kind)
        st.table(block_figures.tensor_table(tensors), hide_index=True)  # long lines break


def block_upon_block(settings: Settings, shown: Shown) -> None:
    """What becomes of the numbers through many blocks."""
    if not page.section("Block upon block"):
        return
    settings.draw("compare")
    depth, depths, blocks = shown.depth, shown.depths, settings.blocks
    final = float(block.depth([shown.stack_output]).spread[0]) if shown.pre_norm else None
    spread = block_words.spread_finding(depth, final)
    page.figure(
        block_figures.depth_chart(depths, settings.block, final),
        key="depth_chart",
        alt=f"Spread and alikeness over {blocks} blocks. {spread}",
    )
    page.findings(
        spread,
        block_words.alikeness_finding(depth, settings.n_tokens),
        *([block_words.comparison(depths)] if settings.compare else []),
    )
    st.caption(
        "Spread: the standard deviation of a token's numbers, averaged over the tokens. "
        "Alikeness: the cosine of the angle between two tokens, averaged over all pairs; 1 means the same direction. "
        "Each block has random weights of its own." + " The dotted line marks the block shown above." * (blocks > 1)
    )


def way_back(settings: Settings, shown: Shown) -> None:
    """The gradient on its way back, for any number of blocks but one."""
    if not page.section("How the gradient gets back"):
        return
    st.markdown(
        "Training asks of every parameter: how does the loss, which says how wrong the model is, change with it? The "
        "answer is its gradient. It is worked out backwards, from the output to block 1. Where it vanishes, a block is "
        "no longer told what to change."
    )
    if settings.blocks == 1:
        st.markdown("With one block there is no way to follow. Choose two or more *Stacked blocks*.")
        if "blocks" not in controls.shown_as().fixed:
            st.button(f"Stack {SEVERAL} blocks", key="transformer_block_several", on_click=stack_several)
        return
    findings = block_words.gradient_findings(shown.lengths, shown.lengths_nearby)
    page.figure(
        block_figures.gradient_chart(shown.lengths),
        key="gradient_chart",
        alt=f"The gradient at the input of {settings.blocks} blocks. {' '.join(findings)}",
    )
    page.findings(*findings)
    st.caption(
        "Read it from right to left, as the gradient goes. At each plus, a residual connection hands it on as it "
        "is, past the sublayer. Length: the square root of the sum of all squares, on a logarithmic axis: equal steps "
        "multiply by the same number. "
        f"All four lines have the same random weights; where there is a norm, it is {shown.kind.order}. The loss adds "
        "up the output's numbers, each times a fixed random number, so that the gradient starts with length 1."
    )


def stack_several() -> None:
    """Show a way to follow."""
    controls.choose("blocks", SEVERAL)


def below(settings: Settings, shown: Shown) -> None:
    """Questions, what to notice, and all numbers."""
    predict.offer(lambda: questions.ask(settings, shown.kind, shown.x, shown.weights, shown.tokens))
    page.notice(
        "A block changes the numbers and keeps the shape. This is why blocks can be stacked.",
        "Switch off the residual connections: the lane beside each sublayer is gone, and what goes in reaches the "
        "output only through the sublayers. What becomes of the two curves under *Block upon block*, spread and "
        "alikeness?",
        "Try 24 blocks with post-norm, with pre-norm and without a norm. See where the spread goes, and how much of "
        "the gradient gets back.",
        "Nothing is trained here. The page *Training lab* trains a small transformer: take its residual connections "
        "or its norm away there, and see whether it still learns.",
    )
    if page.presenting():
        return
    page.numbers(partial(tables, settings, shown))
    page.take_away(settings, partial(arrays, settings, shown), partial(tables, settings, shown))
    page.source(
        block.transformer_block,
        block.feed_forward,
        block.layer_norm,
        *((gradients.gradient_lengths, gradients.through_block) if settings.blocks > 1 else ()),
    )


def tables(settings: Settings, shown: Shown) -> dict[str, pd.DataFrame | page.Table]:
    """The numbers behind the pictures."""
    dimensions = [str(i) for i in range(1, settings.d_model + 1)]
    made: dict[str, pd.DataFrame | page.Table] = {
        f"Output of block {settings.block}": page.frame(shown.one.output, shown.tokens, dimensions),
        "Depth (0: the input)": block_figures.depth_table(shown.depth),
    }
    if settings.blocks > 1:
        made["Length of the gradient at the input of each block"] = block_figures.gradient_table(shown.lengths)
    return made


def arrays(settings: Settings, shown: Shown) -> dict[str, np.ndarray]:
    """All arrays of the page, under the names that they have in its script."""
    before, _ = shown.norm
    layer = block.layer_norm(before)
    made = block_arrays(shown.one, *shown.weights[settings.block - 1]) | {
        "x": shown.x,
        "states": np.stack([shown.x, *(each.output for each in shown.stack)]),
        "stack_output": shown.stack_output,
        "norm_in": before,
        "layer_normed": layer,
        "batch_normed": block.batch_norm(before),
        "spread": shown.depth.spread,
        "alike": shown.depth.alikeness,
    }
    made["mean_in"], made["spread_in"] = block.mean_and_spread(before)
    made["mean_out"], made["spread_out"] = block.mean_and_spread(layer)
    if settings.compare:
        made["compared_spread"] = np.stack([each.spread for each in shown.depths.values()])
        made["compared_alike"] = np.stack([each.alikeness for each in shown.depths.values()])
    if settings.blocks > 1:
        made["gradient_lengths"] = np.stack(list(shown.lengths.values()))
    return made


page.start(
    "transformer_block",
    "One block takes a row of numbers per token and gives back a row of the same length. Follow the arrows down.",
)
controls.open_page("transformer_block", CONTROLS["transformer_block"], in_parts=True)
page.parts(
    compute,
    the_block,
    flow,
    what_the_norm_does,
    which_way,
    every_tensor,
    block_upon_block,
    way_back,
    below=below,
    unmoved={every_tensor: {"weight_scale", "blocks", "block"}, way_back: {"block"}},
)
page.foot("transformer_block")
