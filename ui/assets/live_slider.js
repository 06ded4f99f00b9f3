const QUICK = 1000, REST = 400, PATIENCE = 300; // milliseconds
function take(input, show) {
    const hand = { waiting: false, pending: false, keyed: false, quick: false, last: -QUICK };
    const send = rest => {
        if (rest) { clearTimeout(hand.rest); hand.owes = false; }
        clearTimeout(hand.patience);
        hand.pending = false; hand.waiting = true; hand.sent += 1;
        hand.report('moved', { value: hand.value(), number: hand.sent, rest });
        hand.patience = setTimeout(hand.answered, PATIENCE);
    };
    hand.answered = () => { hand.waiting = false; if (hand.pending) send(false); };
    input.onkeydown = () => { hand.keyed = true; };
    input.onpointerdown = () => { hand.keyed = false; };
    hand.send = send;
    input.oninput = () => {
        show();
        hand.moved = true;
        hand.quick = performance.now() - hand.last < QUICK; hand.last = performance.now();
        clearTimeout(hand.rest);
        hand.owes = hand.keyed; // to say that it rests; a mouse says when it lets go
        if (hand.owes) hand.rest = setTimeout(send, REST, true);
        if (hand.keyed && !hand.quick) return; // one key press: it is at rest, says `change` at once
        if (hand.waiting) hand.pending = true; else send(false);
    };
    input.onchange = () => { if (!hand.keyed || !hand.quick) send(true); };
    const main = document.querySelector('[data-testid="stMain"]');
    const drawn = new MutationObserver(changes => {
        if (hand.waiting && changes.some(change => change.target.closest?.('.js-plotly-plot'))) hand.answered();
    });
    // Streamlit ends and begins it with each drawing; what was under way goes on.
    hand.begin = () => {
        if (main) drawn.observe(main, { childList: true, subtree: true });
        if (hand.waiting) hand.patience = setTimeout(hand.answered, PATIENCE);
        if (hand.owes) hand.rest = setTimeout(send, REST, true);
    };
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
    hand.end(); hand.begin();
    const other = hand.session !== undefined && hand.session !== session; // a server that was started again
    if (hand.session !== session || hand.sent < heard) Object.assign(hand, { session, sent: heard });
    const [min, max, step] = options ? [0, options.length - 1, 1] : [data.min, data.max, data.step];
    const at = String(options ? options.indexOf(data.value) : data.value);
    if (other && hand.moved && input.value !== at) hand.send(true); // it has not heard of the last move
    else if (hand.sent === heard && !hand.pending) {
        Object.assign(input, { min, max, step });
        if (input.value !== at) input.value = at;
        hand.moved = false;
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
