"""The questions of a page at any of its settings, from the arrays that the page would hand over."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from core import attention, block, draws, multi_head, positional, trained, training
from core.tasks import TASKS
from ui import figures, page_controls
from ui.control_kinds import Choice as ChoiceControl
from ui.control_kinds import Control, Flags, Length, Line, Option, Sentence, Settings, Slider, Switch
from ui.link import resolve
from ui.predict import Question
from ui.questions import (
    multi_head_attention,
    positional_encoding,
    recurrence,
    self_attention,
    training_lab,
    transformer_block,
)

SENTENCES = ("", "", "", "dog", "dog dog", "the cat saw the dog", "<b> $x$ *a* :red[x] <b>", "word " * 64)


def random_value(control: Control, rng: random.Random, settings: Settings) -> Any:
    """A legal value of a control, its ends more often than others."""
    match control:
        case Switch():
            return rng.random() < 0.5
        case Option():
            return rng.choice(control.options)
        case Sentence():
            return rng.choice(SENTENCES)
        case Line():
            return ""
        case Flags():
            return tuple(option for option in control.options(settings) if rng.random() < 0.3)
        case ChoiceControl():
            options = control.options(settings)
            return rng.choice([options[0], options[-1], rng.choice(options)])
        case Slider():
            steps = round((control.high - control.low) / control.step)
            value = control.low + control.step * rng.choice([0, 1, steps, rng.randint(0, steps)])
            return control.nearest(value, settings) if not isinstance(control, Length) else value
    raise AssertionError(control)


def random_settings(page: str, rng: random.Random) -> Settings:
    controls = [control for control in page_controls.CONTROLS[page] if isinstance(control, Control)]
    chosen: dict[str, Any] = {}
    for control in controls:
        so_far = resolve(controls, chosen)
        if rng.random() < 0.6:
            chosen[control.name] = random_value(control, rng, so_far)
    return resolve(controls, chosen)


def of(page: str, **chosen: Any) -> Settings:
    """The settings of a page with some of them chosen."""
    controls = [control for control in page_controls.CONTROLS[page] if isinstance(control, Control)]
    return resolve(controls, chosen)


# --- what each page hands over --------------------------------------------------------------------------------------


def tokens_of(s: Settings) -> np.ndarray:
    if s.tokens:
        return draws.words(s.tokens, s.d_model, s.seed)
    return draws.tokens(s.n_tokens, s.d_model, s.seed)


def ask_recurrence(s: Settings) -> list[Question]:
    return recurrence.ask(s, tokens_of(s))


def second_of(s: Settings) -> np.ndarray:
    words = s.sentences["source"].tokens
    if words:
        return draws.words(words, s.d_model, s.seed)
    return draws.memory_tokens(s.source_len, s.d_model, s.seed)


def allowed_of(s: Settings, n: int, m: int) -> np.ndarray:
    allowed = attention.padding_mask(n, m, s.padding)
    return allowed & attention.causal_mask(n) if s.causal else allowed


def ask_self_attention(s: Settings) -> list[Question]:
    x = tokens_of(s)
    source = second_of(s) if s.cross else x
    names = s.sentences["source"].tokens if s.cross else s.tokens
    queries = figures.token_names(s.tokens, len(x))
    keys = figures.token_names(names, len(source), padding=s.padding)
    return self_attention.ask(s, x, source, allowed_of(s, len(x), len(source)), queries, keys)


def ask_positional_encoding(s: Settings) -> list[Question]:
    x = s.embedding_scale * tokens_of(s)
    table = draws.position_table(len(x), s.d_model, s.seed)
    encoding = positional.add_positions(np.zeros_like(x), s.scheme, table)
    slope = float(positional.alibi_slopes(8)[s.alibi_head - 1])
    return positional_encoding.ask(s, x, encoding, draws.attention_weights(s.d_model, s.seed, 0.3), slope)


def layer_of(s: Settings) -> tuple[multi_head.Layer, Sequence[str], np.ndarray]:
    if s.heads_from == "trained":
        model, parameters = trained.load(s.model)
        letters = training.examples(model).letters[s.example - 1].tolist()
        trace = trained.trace(parameters, model, letters, s.mark - 1 if TASKS[model.task].marked else None)
        layer = trace.layers[s.layer - 1]
        return layer, figures.token_names(["A"] * len(layer.x), len(layer.x)), trace.allowed
    allowed = attention.causal_mask(s.n_tokens) if s.causal else np.ones((s.n_tokens, s.n_tokens), dtype=bool)
    names = figures.token_names(s.tokens, s.n_tokens)
    if s.heads_from == "built by hand":
        return (
            multi_head.built_heads(s.tokens or multi_head.example_sentence(s.n_tokens), s.d_model, s.seed),
            names,
            allowed,
        )
    weights = draws.attention_weights(s.d_model, s.seed, s.weight_scale)
    return multi_head.random_heads(tokens_of(s), weights, s.heads), names, allowed


def ask_multi_head_attention(s: Settings) -> list[Question]:
    layer, names, allowed = layer_of(s)
    return multi_head_attention.ask(s, layer, multi_head.attend(layer, allowed), names)


def kind_of(s: Settings) -> block.Settings:
    return block.Settings(
        heads=s.heads,
        residual=s.residual,
        norm=s.norm,
        order=s.order,
        activation=s.activation.lower(),
        output_projection=s.output_projection,
        causal=s.causal,
    )


def ask_transformer_block(s: Settings) -> list[Question]:
    x = tokens_of(s)
    weights = [draws.block_weights(s.d_model, s.d_ff, s.seed, s.weight_scale)]
    return transformer_block.ask(s, kind_of(s), x, weights, figures.token_names(s.tokens, len(x)))


def model_of(s: Settings) -> training.Settings:
    names = ("task", "heads", "layers", "d_model", "encoding", "residual", "norm", "steps", "seed")
    return training.Settings(**{name: getattr(s, name) for name in names}, learning_rate=float(s.learning_rate))


def ask_training_lab(s: Settings) -> list[Question]:
    return training_lab.ask(model_of(s))


ASK: dict[str, Callable[[Settings], list[Question]]] = {
    "recurrence": ask_recurrence,
    "self_attention": ask_self_attention,
    "positional_encoding": ask_positional_encoding,
    "multi_head_attention": ask_multi_head_attention,
    "transformer_block": ask_transformer_block,
    "training_lab": ask_training_lab,
}
