"""A slider that reports while it moves: `st.slider` does when it is let go.

It keeps no state. It shows the value that it is given, and reports each move with a running number; the script says
with the next drawing which number it has heard. An answer to an earlier move than the last one moves nothing: the hand
is ahead of it. A move is reported when the page has drawn the one before, so that slow machines draw fewer pictures
and not late ones; the last one is always reported, with a mark that the slider is at rest.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

_HTML = """<div class="live-slider">
<div><label></label><button type="button" aria-label="Help">?</button><output></output></div>
<p hidden></p><input type="range"><div aria-hidden="true"><span></span><span></span></div></div>"""

_CSS = """.live-slider { font: 1rem/1.4 var(--st-font); color: var(--st-text-color); padding-bottom: 0.4rem }
.live-slider > div { display: flex; justify-content: space-between; gap: 0.5rem; font-size: 0.875rem }
.live-slider output { font-weight: 600; margin-left: auto }
.live-slider p { font-size: 0.875rem; margin: 0.25rem 0 }
.live-slider button { width: 24px; height: 24px; padding: 0; border: 1px solid; border-radius: 50%; background: none;
    color: inherit; font: inherit; cursor: pointer }
.live-slider input { width: 100%; height: 28px; margin: 0; accent-color: var(--st-primary-color); cursor: pointer;
    touch-action: pan-y }
.live-slider :is(input, button):focus-visible { outline: 3px solid var(--st-primary-color); outline-offset: 2px;
    border-radius: 6px }"""

_JS = """
const QUICK = 1000, REST = 400, PATIENCE = 300; // milliseconds
function take(input, show) {
    const hand = { waiting: false, pending: false, keyed: false, quick: false, last: -QUICK };
    const send = rest => {
        if (rest) clearTimeout(hand.rest);
        clearTimeout(hand.patience);
        hand.pending = false; hand.waiting = true; hand.sent += 1;
        hand.report('moved', { value: hand.value(), number: hand.sent, rest });
        hand.patience = setTimeout(hand.answered, PATIENCE);
    };
    hand.answered = () => { hand.waiting = false; if (hand.pending) send(false); };
    input.onkeydown = event => {
        hand.keyed = true;
        if (!['PageUp', 'PageDown'].includes(event.key) || !document.querySelector('.st-key-way_on')) return;
        event.preventDefault(); event.stopPropagation(); input.blur(); // while presenting these keys lead on and back
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: event.key, code: event.key, bubbles: true }));
    };
    input.onpointerdown = () => { hand.keyed = false; };
    input.oninput = () => {
        show();
        hand.quick = performance.now() - hand.last < QUICK; hand.last = performance.now();
        clearTimeout(hand.rest);
        if (hand.keyed) hand.rest = setTimeout(send, REST, true); // a mouse says when it lets go
        if (hand.keyed && !hand.quick) return; // one key press: it is at rest, says `change` at once
        if (hand.waiting) hand.pending = true; else send(false);
    };
    input.onchange = () => { if (!hand.keyed || !hand.quick) send(true); };
    const main = document.querySelector('[data-testid="stMain"]');
    const drawn = new MutationObserver(changes => {
        if (hand.waiting && changes.some(change => change.target.closest?.('.js-plotly-plot'))) hand.answered();
    });
    if (main) drawn.observe(main, { childList: true, subtree: true });
    hand.end = () => { drawn.disconnect(); clearTimeout(hand.rest); clearTimeout(hand.patience); };
    return hand;
}
export default function ({ data, key, parentElement, setTriggerValue }) {
    const [input, label, output, button, help] = ['input', 'label', 'output', 'button', 'p']
        .map(name => parentElement.querySelector(name));
    const { options, heard, session } = data;
    const text = () => String(input.hand.value());
    const show = () => { output.textContent = text(); input.setAttribute('aria-valuetext', text()); };
    const hand = input.hand ??= take(input, () => input.hand.show());
    Object.assign(hand, { show, report: setTriggerValue,
        value: () => options ? options[input.value] : Number(Number(input.value).toFixed(6)) });
    if (hand.session !== session || hand.sent < heard) Object.assign(hand, { session, sent: heard });
    const [min, max, step] = options ? [0, options.length - 1, 1] : [data.min, data.max, data.step];
    const at = String(options ? options.indexOf(data.value) : data.value);
    if (hand.sent === heard && !hand.pending) {
        Object.assign(input, { min, max, step });
        if (input.value !== at) input.value = at;
    }
    input.id = label.htmlFor = output.htmlFor = `slider-${key}`;
    label.textContent = data.label;
    button.hidden = !data.help;
    if (data.help) {
        help.id = `help-${key}`; help.textContent = data.help;
        input.setAttribute('aria-describedby', help.id); button.setAttribute('aria-controls', help.id);
        button.setAttribute('aria-expanded', String(!help.hidden));
        button.onclick = () => {
            help.hidden = !help.hidden; button.setAttribute('aria-expanded', String(!help.hidden)); };
    }
    const ends = parentElement.querySelectorAll('span');
    ends[0].textContent = options ? options[0] : min; ends[1].textContent = options ? options[max] : max;
    show();
    return hand.end;
}
"""


def _slim(text: str) -> str:
    """Without indentation: each slider sends all of it with every drawing."""
    return re.sub(r"\n\s*", "\n", text)


_mount = st.components.v2.component(
    "live_slider", html=_slim(_HTML), css=_slim(_CSS), js=_slim(_JS), isolate_styles=False
)


def can_be_drawn() -> bool:
    """Whether a browser is there to draw it: a browser says at which address it is. Tests without one do not."""
    return st.context.url is not None


def draw(
    label: str,
    track: Mapping[str, Any],
    *,
    key: str,
    help: str | None,
    heard: int,
    session: str,
    on_move: Callable[[], None],
) -> None:
    """Draw it.

    Args:
        track: min, max and step, or options; and value, what is shown.
        heard: the number of the last move that was heard. session: whose moves these numbers count.
        on_move: called before the script runs; `reported` says what was moved.
    """
    data = dict(label=label, help=help, heard=heard, session=session) | dict(track)
    _mount(key=key, data=data, on_moved_change=on_move)


def reported(key: str) -> tuple[Any, int, bool] | None:
    """The value, the number and whether the slider is at rest, as a browser reports them; None for nonsense."""
    told = st.session_state[key].get("moved")
    if not isinstance(told, dict) or type(told.get("number")) is not int:
        return None
    return told.get("value"), told["number"], told.get("rest") is not False
