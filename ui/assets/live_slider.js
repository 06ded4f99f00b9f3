const QUICK = 1000, REST = 400; // milliseconds
const line = window.sliderLine ??= { hands: new Set(), wires: new Map(), waiting: 0, sent: 0, moved: 0 };
function take(input) {
    const hand = { moved: false, rests: false, touched: false, keyed: false, quick: false, at: -QUICK, last: 0 };
    const say = () => { line.hands.add(hand); line.next?.(); };
    const rests = () => { clearTimeout(hand.timer); hand.owes = false; hand.rests = true; say(); };
    input.onkeydown = () => { hand.keyed = true; };
    input.onpointerdown = () => { hand.keyed = false; };
    input.oninput = () => {
        hand.show();
        hand.moved = hand.touched = true;
        hand.quick = performance.now() - hand.at < QUICK; hand.at = performance.now();
        clearTimeout(hand.timer);
        hand.owes = hand.keyed && hand.quick; // a held key: it rests when no other one follows
        if (hand.owes) hand.timer = setTimeout(rests, REST);
        // One key is let go in the same moment, so that one report may say both.
        if (hand.keyed && !hand.quick) hand.timer = setTimeout(say); else say();
    };
    input.onchange = () => { if (!hand.keyed || !hand.quick) rests(); }; // let go, or one key
    hand.say = () => { hand.moved = true; rests(); };
    // Streamlit ends and begins it with each drawing; what was under way goes on.
    hand.begin = () => {
        hand.over = false;
        if (hand.owes) hand.timer = setTimeout(rests, REST);
        if (hand.moved || hand.rests) say();
    };
    hand.end = () => { clearTimeout(hand.timer); line.hands.delete(hand); hand.over = true; };
    return hand;
}
export default function ({ data, key, parentElement }) {
    const [input, label, output, button, help] = ['input', 'label', 'output', 'button', 'p']
        .map(name => parentElement.querySelector(name));
    const { options, session } = data;
    const hand = input.hand ??= take(input);
    const value = () => options ? options[input.value] : Number(Number(input.value).toFixed(6));
    const show = () => { output.textContent = value(); input.setAttribute('aria-valuetext', value()); };
    const told = { name: data.name, beside: data.beside, wire: data.wire, wireAtRest: data.wire_at_rest };
    Object.assign(hand, told, { value, show });
    if (line.session !== session) Object.assign(line, { session, sent: 0, waiting: 0 });
    line.sent = Math.max(line.sent, data.heard);
    const other = hand.session !== undefined && hand.session !== session; // a server that was started again
    if (hand.session !== session) Object.assign(hand, { session, last: 0 });
    hand.end(); hand.begin();
    const [min, max, step] = options ? [0, options.length - 1, 1] : [data.min, data.max, data.step];
    const at = String(options ? options.indexOf(data.value) : data.value);
    if (other && hand.touched && input.value !== at) hand.say(); // it has not heard of the last move
    else if (hand.last <= data.heard && !hand.moved) {
        Object.assign(input, { min, max, step });
        if (input.value !== at) input.value = at;
        hand.touched = false;
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
