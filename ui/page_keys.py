"""Keys of a page that no widget has: P and the page keys also from a slider, and down to the end of a long section.

While a page is presented, PageDown and PageUp are the shortcuts of the buttons that lead on and back. Here they first
move through what does not fit on the screen. Another section begins at its top.

And where the connection was lost, the page is drawn again as soon as it is back: a server that was started again, or
another one, knows nothing yet of the parts that follow a slider.
"""

import streamlit as st

from ui import live_slider

_JS = """
const main = () => document.querySelector('[data-testid="stMain"]');
const ROOM = 8; // pixels: less is not worth a key
function move(event) {
    const presented = document.querySelector('.st-key-way_on'), down = event.key === 'PageDown';
    if (!event.isTrusted || event.ctrlKey || event.altKey || event.metaKey) return;
    const leads = presented && (down || event.key === 'PageUp'), slides = event.target.matches?.('input[type="range"]');
    if (!leads && !(slides && event.key.toLowerCase() === 'p')) return;
    const { scrollTop, scrollHeight, clientHeight } = main();
    const rest = down ? scrollHeight - clientHeight - scrollTop : scrollTop;
    if (leads && rest > ROOM) main().scrollBy(0, (down ? 0.8 : -0.8) * clientHeight);
    else if (slides) { // a slider would take the key for itself
        event.target.blur();
        document.body.dispatchEvent(new KeyboardEvent('keydown', { key: event.key, code: event.code, bubbles: true }));
    } else return;
    event.preventDefault(); event.stopImmediatePropagation();
}
function returns(app) {
    let lost = false;
    new MutationObserver(() => {
        const connected = app.dataset.testConnectionState === 'CONNECTED';
        if (connected && lost) window.pageAgain();
        lost = !connected;
    }).observe(app, { attributes: true, attributeFilter: ['data-test-connection-state'] });
}
export default function ({ data, setTriggerValue }) {
    window.pageAgain = () => setTriggerValue('again', true);
    if (!window.pageKeys) {
        document.addEventListener('keydown', move, true);
        returns(document.querySelector('[data-testid="stApp"]'));
    }
    if (window.pageKeys && window.pageKeys !== data.top) main().scrollTo(0, 0);
    window.pageKeys = data.top;
}
"""
_mount = st.components.v2.component("page_keys", html="<span hidden></span>", js=_JS, isolate_styles=False)


def listen(top: str) -> None:
    """Listen to the keys, and go to the top of the page where `top`, which says what is on show, is another one."""
    if live_slider.can_be_drawn():  # as there, only a browser can
        with st.container(key="page_keys"):  # takes no room: `ui.page` hides it
            _mount(key="keys", data={"top": top}, on_again_change=lambda: None)
