"""The controls of every page, in the order in which they are drawn; a plain string is a heading in the sidebar."""

from core import positional, trained, training
from core.tasks import TASKS
from core.training import Settings as Model
from ui import controls, navigation, training_runs
from ui.control_kinds import Control, Settings

STAGES = ("inputs", "projections", "scores", "scaling", "mask", "softmax", "output", "all")  # of self-attention
ADDED = ("sinusoidal", "table")  # the schemes that are added to the embeddings
RANDOM, BUILT, TRAINED = "random", "built by hand", "trained"  # where heads come from
RATES = ("0.0003", "0.001", "0.003", "0.01", "0.03", "0.1", "1", "10", "100")
OF_TASK = ("heads", "layers", "encoding", "steps")  # what choosing a task sets too


def is_trained(s: Settings) -> bool:
    """Whether the heads are those of a trained model, which has its own alphabet and sizes."""
    return s.heads_from == TRAINED


def _free(s: Settings) -> bool:
    """Whether sentence and sizes are the reader's to choose."""
    return not is_trained(s)


def _head_count(s: Settings) -> int:
    """How many heads there are to choose from."""
    return {RANDOM: s.heads, BUILT: 3, TRAINED: TASKS[s.model].heads}[s.heads_from]


def _needed(task: str) -> dict[str, object]:
    """The settings of a task that its choice brings along: with them it is learned."""
    return {name: getattr(training.suggested(task), name) for name in OF_TASK}


_CLASS_PAGES = [entry.title for entry in navigation.ENTRIES[1:]]

CONTROLS: dict[str, list[Control | str]] = {
    "recurrence": [
        "Sequence",
        controls.sentence(),
        controls.seq_len(2, 256, default=12),
        controls.d_model(4, 128, step=2, default=8),
        "Weights",
        controls.slider(
            "gain",
            "Gain of the recurrent weights",
            0.1,
            2.5,
            step=0.1,
            default=1.0,
            help="How strongly each state of the RNN is carried over into the next one",
        ),
        controls.slider("weight_scale", "Size of the attention weights", 0.1, 1.0, step=0.1, default=0.3),
        controls.seed(),
    ],
    "self_attention": [
        "Sequence",
        controls.sentence(),
        controls.seq_len(2, 64, default=5),
        controls.d_model(2, 64, step=2, default=6),
        controls.switch("cross", "Cross-attention: a second sequence", default=False),
        controls.source(only_if=lambda s: s.cross),
        controls.source_len(2, 64, default=7, only_if=lambda s: s.cross),
        "Attention",
        controls.switch(
            "scaling",
            "Divide scores by √d_k",
            default=True,
            help="d_k is the width of queries and keys. With the one head of this page it is d_model.",
        ),
        controls.switch("causal", "Causal mask: nobody looks ahead", default=False, only_if=lambda s: not s.cross),
        controls.choice_up_to(
            "padding",
            "Padding tokens",
            low=0,
            high=lambda s: s.source_len if s.cross else s.n_tokens,
            default=0,
            help="The last tokens only fill up the length: no query may look at them.",
        ),
        controls.slider(
            "temperature",
            "Temperature",
            0.1,
            5.0,
            step=0.1,
            default=1.0,
            help="Scores are divided by it. Below 1 the rows get sharper, above 1 more even.",
        ),
        "Weights",
        controls.slider("weight_scale", "Size of the random weights", 0.1, 1.0, step=0.1, default=0.3),
        controls.seed(),
        controls.choice_up_to("query", "Query token", low=1, high=lambda s: s.n_tokens, default=1, in_page=True),
        controls.option("stage", "Stage", STAGES, default="inputs", in_page=True),
    ],
    "positional_encoding": [
        "Sequence",
        controls.sentence(),
        controls.seq_len(2, 128, default=20),
        controls.d_model(2, 128, step=1, default=16),
        controls.option(
            "scheme",
            "Scheme",
            positional.SCHEMES,
            default="sinusoidal",
            in_page=True,
            help="How attention is told the positions. sinusoidal: sines and cosines, as in the lesson. table: numbers "
            "for each position that a model would learn. rope: queries and keys are turned (RoPE). alibi: scores lose "
            "by distance (ALiBi).",
        ),
        controls.choice_up_to(
            "pair",
            "Another pair of dimensions to draw (pairs are counted from 0)",
            low=0,
            high=lambda s: (s.d_model if s.scheme == "rope" else s.d_model + 1) // 2 - 1,
            default=1,
            in_page=True,
            only_if=lambda s: s.scheme in (*ADDED, "rope"),
        ),
        controls.slider(
            "alibi_head", "Head, of 8", 1, 8, default=1, in_page=True, only_if=lambda s: s.scheme == "alibi"
        ),
        controls.option("permutation", "New order", positional.PERMUTATIONS, default="reversed", in_page=True),
        controls.switch(
            "causal",
            "Causal mask with the chosen scheme",
            default=False,
            in_page=True,
            only_if=lambda s: s.scheme != "none",
        ),
        "Embeddings",
        controls.slider(
            "embedding_scale",
            "Size of the embeddings",
            0.1,
            5.0,
            step=0.1,
            default=1.0,
            help="Every embedding is multiplied by this. The paper multiplies its embeddings by √d_model "
            "before it adds the encoding.",
        ),
        controls.seed(),
    ],
    "multi_head_attention": [
        "Heads",
        controls.option("heads_from", "Where the heads come from", (RANDOM, BUILT, TRAINED), default=RANDOM),
        controls.option("model", "Trained for", tuple(trained.FILES), default=Model.task, only_if=is_trained),
        "Sequence",
        controls.sentence(only_if=_free),
        controls.seq_len(2, 64, default=6, only_if=_free),
        controls.d_model(4, 64, step=2, default=8, only_if=_free),
        controls.line("letters", "Letters", only_if=is_trained, help="A to L: the model knows no other letters"),
        controls.slider(
            "example", "Example sequence", 1, 16, default=1, only_if=lambda s: is_trained(s) and not s.letters
        ),
        "Attention",
        controls.heads(default=2, only_if=lambda s: s.heads_from == RANDOM),
        controls.switch("causal", "Causal mask: nobody looks ahead", default=False, only_if=_free),
        "Weights",
        controls.slider(
            "weight_scale",
            "Size of the random weights",
            0.1,
            1.0,
            step=0.1,
            default=0.3,
            only_if=lambda s: s.heads_from == RANDOM,
        ),
        controls.seed(only_if=_free),
        controls.slider(
            "mark",
            "Marked letter",
            1,
            12,
            default=6,
            in_page=True,
            only_if=lambda s: is_trained(s) and s.model == Model.task,
        ),
        controls.slider(
            "layer", "Layer", 1, 2, default=1, in_page=True, only_if=lambda s: is_trained(s) and s.model != Model.task
        ),
        controls.choice_up_to(
            "head", "Head shown large", high=_head_count, in_page=True, only_if=lambda s: _head_count(s) > 1
        ),
        controls.flags("off", "Heads switched off", high=_head_count, in_page=True),
    ],
    "transformer_block": [
        "Sequence",
        controls.sentence(),
        controls.seq_len(2, 64, default=5),
        controls.d_model(4, 64, step=2, default=8),
        "Block",
        controls.heads(default=1),
        controls.slider("d_ff", "Feed-forward width d_ff", 4, 256, step=4, default=16),
        controls.switch(
            "residual",
            "Residual connections",
            default=True,
            help="Each sublayer's input is added to its output: what went in is carried past it.",
        ),
        controls.switch(
            "norm",
            "LayerNorm",
            default=True,
            help="Brings each token's numbers to mean 0 and spread 1, token by token.",
        ),
        controls.option(
            "order",
            "Order",
            ["post-norm", "pre-norm"],
            default="post-norm",
            help="Where LayerNorm stands. Without it, only the comparisons below depend on this.",
        ),
        controls.option(
            "activation",
            "Activation",
            ["ReLU", "GELU"],
            default="ReLU",
            help="What the feed-forward sublayer does to each number between its two matrices. ReLU: 0 in place of "
            "what is negative. GELU: nearly so, with a soft edge.",
        ),
        controls.switch("output_projection", "Output projection W_O", default=False),
        controls.switch("causal", "Causal mask: nobody looks ahead", default=False),
        controls.slider("blocks", "Stacked blocks", 1, 24, step=1, default=1),
        "Weights",
        controls.slider("weight_scale", "Size of the random weights", 0.1, 1.0, step=0.1, default=0.2),
        controls.seed(),
        controls.choice_up_to(
            "block",
            "Block shown",
            high=lambda s: s.blocks,
            default=1,
            in_page=True,
            only_if=lambda s: s.blocks > 1,
        ),
        controls.option(
            "layer_norm",
            "LayerNorm shown",
            ["first", "second"],
            default="first",
            in_page=True,
            only_if=lambda s: s.norm,
        ),
        controls.switch("compare", "Compare post-norm, pre-norm and no norm", default=False, in_page=True),
    ],
    "training_lab": [
        controls.option("task", "Task", list(TASKS), default=Model.task, sets=_needed),
        "Model",
        controls.slider("layers", "Layers", 1, 3, default=Model.layers),
        controls.d_model(8, 64, step=8, default=Model.d_model),
        controls.heads(default=Model.heads, most=8),
        controls.option("encoding", "Positional encoding", training.ENCODINGS, default=Model.encoding),
        controls.switch("residual", "Residual connections", default=True),
        controls.switch("norm", "LayerNorm", default=True),
        "Training",
        controls.option("learning_rate", "Learning rate", RATES, default=f"{Model.learning_rate:g}"),
        controls.slider("steps", "Steps", 100, 2000, step=100, default=Model.steps),
        controls.seed(),
        "Beside it",
        controls.option(
            "beside",
            "A second run with one thing changed",
            training_runs.CHANGES,
            default=training_runs.NOTHING,
            help="Both are trained side by side, and both curves stand in one chart.",
        ),
    ],
    "home": [controls.sentence(in_page=True)],
    "hand_out": [controls.option("page", "Page", _CLASS_PAGES, default=_CLASS_PAGES[1], in_page=True)],
}


def declared(page: str) -> list[Control]:
    """The controls of a page, without the headings among them."""
    return [control for control in CONTROLS[page] if isinstance(control, Control)]
