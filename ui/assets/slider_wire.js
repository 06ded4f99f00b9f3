const PATIENCE = 2000, QUIET = 1500, SOON = 50, BACK = 500; // milliseconds
const TIMES = 6; // that quiet goes by before what should have been waited for is not
const LAST = 'wire last'; // it is drawn after all parts
const ALONE = 'wire'; // of a page that is not in parts
const NOTHING = 0, DRAWING = 1, ANSWER = 2;
// What all sliders and wires of the page share: who has something to report, by which wires, and what is waited for;
// the number of the last report, when a move was reported last, and which part followed it.
const line = window.sliderLine ??= { hands: new Set(), wires: new Map(), waiting: NOTHING, sent: 0, moved: 0 };
const partOf = wire => wire.replace('wire ', '');
// A part's block on the page: its wire is the last in it.
const place = part => document.querySelector(`.st-key-wire-${part.replace(' ', '-')}`)?.parentElement;
// The parts of which something is on the screen, with how many pixels of their height.
const seen = line.seen = () => {
    const found = new Map();
    for (const part of [...line.wires.keys()].map(partOf)) {
        const { top, bottom } = place(part)?.getBoundingClientRect() ?? { top: 0, bottom: 0 };
        const pixels = Math.min(bottom, innerHeight) - Math.max(top, 0);
        if (pixels > 0) found.set(part, pixels);
    }
    return found;
};
// Whoever has scrolled on sees the part that is before the eyes follow, not the one that leads.
function followed(leader) {
    const parts = seen(), most = Math.max(...parts.values());
    if (!parts.size || parts.get(partOf(leader)) > innerHeight / 4) return leader;
    return `wire ${[...parts.keys()].find(part => parts.get(part) === most)}`;
}
line.next = () => {
    const hands = [...line.hands], hand = hands.find(each => each.moved) ?? hands[0];
    if (!hand || line.waiting > (hand.moved ? DRAWING : NOTHING)) return;
    const { moved, rests } = hand, wants = rests ? hand.wants ?? [...seen().keys()] : [];
    const moves = hand.beside ? followed(hand.wire) : hand.wire;
    // Where the part that follows a move is all that is on the screen, that it rests is said with the move.
    const rest = rests && (!moved || !hand.wireAtRest || wants.join() === partOf(moves));
    const next = wants.find(part => part !== line.followed);
    const wire = moved ? moves : next ? `wire ${next}` : hand.wireAtRest || moves;
    const report = line.wires.get(wire);
    if (!report) return; // it is being drawn
    if (moved) {
        Object.assign(line, { moved: performance.now(), followed: partOf(moves) });
        Object.assign(hand, { moved: false, again: false });
        expect(place(line.followed));
    }
    if (rest) hand.rests = false;
    if (!hand.rests) line.hands.delete(hand);
    line.waiting = ANSWER;
    hand.last = line.sent += 1;
    line.patience = setTimeout(unheard, PATIENCE, line.sent, rest && hand);
    report({ name: hand.name, value: hand.value(), number: hand.last, rest, seen: wants, back: hand.back });
};
function heard(number) {
    if (number < line.sent) return;
    clearTimeout(line.patience);
    line.waiting = NOTHING;
    // That a slider rests is said when the picture of its move has been painted: it lets the rest of the page follow.
    if ([...line.hands].some(hand => hand.moved)) line.next(); else painted(line.next);
}
// That a slider rests is said once more where no answer comes: otherwise the rest of the page would stay as it was.
function unheard(number, hand) {
    if (number === line.sent && hand && !hand.again && !hand.over) {
        hand.again = hand.rests = true;
        line.hands.add(hand);
    }
    heard(number);
}
// That a move was answered is seen first by its picture: Streamlit puts a new chart in the place of the old one. While
// Plotly draws it, the next move is on its way.
const answer = new MutationObserver(() => {
    answer.disconnect();
    line.waiting = Math.min(line.waiting, DRAWING);
    line.next();
});
function expect(part) {
    answer.disconnect();
    for (const chart of part?.querySelectorAll('[data-testid="stPlotlyChart"]') ?? [])
        answer.observe(chart.closest('[data-testid="stVerticalBlock"]'), { childList: true });
}
function painted(then) {
    requestAnimationFrame(() => setTimeout(then));
}
function chartsAreThere() {
    const charts = [...document.querySelectorAll('[data-testid="stSkeleton"], [data-testid="stPlotlyChart"]')];
    return charts.every(chart => chart.querySelector('.main-svg'));
}
// Parts that are late follow when they are seen, and when nothing has moved for a while; those that are empty still, as
// soon as the pictures before them are there.
function watch(late, empty) {
    const eye = { name: '', value: () => null, wire: LAST, wireAtRest: LAST };
    const look = wants => { Object.assign(eye, { rests: true, wants }); line.hands.add(eye); line.next(); };
    const observer = new IntersectionObserver(() => {
        const now = seen(), wants = late.filter(part => now.has(part)); // not what is at the edge without a height
        if (wants.length) look(wants);
    });
    let soon, times = 0; // should a chart never come
    const quiet = setInterval(() => {
        const still = !line.waiting && !line.hands.size && performance.now() - line.moved > QUIET;
        if (still && (!empty || chartsAreThere() || ++times > TIMES)) look(late);
    }, QUIET);
    const open = () => {
        if (chartsAreThere()) painted(() => look(late)); else soon = setTimeout(open, SOON);
    };
    if (empty) open(); else late.map(place).forEach(part => part && observer.observe(part));
    return () => {
        observer.disconnect(); clearInterval(quiet); clearTimeout(soon); line.hands.delete(eye);
        eye.over = true;
    };
}
// The heading that the address names moves down while what is above it is drawn: it is kept in view until the reader
// does something.
function land() {
    const heading = document.getElementById(location.hash.slice(1));
    const block = document.querySelector('[data-testid="stMainBlockContainer"]');
    if (!heading || line.landed === location.pathname) return;
    line.landed = location.pathname;
    const keep = new ResizeObserver(() => heading.scrollIntoView());
    keep.observe(block);
    for (const act of ['wheel', 'touchstart', 'pointerdown', 'keydown'])
        addEventListener(act, () => keep.disconnect(), { once: true, capture: true });
}
// Coming to a page is one step in the browser's history. Its first run finds the link that belongs to it and begins
// anew; where the browser saw that first run, Streamlit makes a second step of it: with the link when the page is there,
// or with the link ahead of the page, while the one before is still there. The way ends with the page's last wire, which
// is of another run than those of the page before.
if (!line.push) {
    line.push = history.pushState.bind(history);
    history.pushState = (state, title, to) => {
        const other = new URL(to ?? '', location).pathname !== location.pathname;
        if (other ? line.ahead : line.coming) history.replaceState(state, title, to); else line.push(state, title, to);
        line.ahead = !other && !line.coming;
        if (other) line.coming = line.run;
    };
    addEventListener('popstate', () => { clearTimeout(line.back); line.back = setTimeout(wentBack, BACK); });
}
// A click that comes right after a step in the history hides that step from the server, and its answer to the step may
// turn switches back. So the step is told once more when all is at rest: then what the link says holds.
function wentBack() {
    const { testScriptState } = document.querySelector('[data-testid="stApp"]')?.dataset ?? {};
    if (testScriptState !== 'notRunning' || line.waiting || line.hands.size) line.back = setTimeout(wentBack, BACK);
    else if (place('last')) {
        line.hands.add({ name: '', value: () => null, rests: true, wants: [], wire: LAST, wireAtRest: LAST, back: true });
        line.next();
    }
}
export default function ({ data, setTriggerValue }) {
    line.wires.set(data.name, report => setTriggerValue('moved', report));
    heard(data.heard);
    if (data.run !== line.coming && (data.late !== undefined || data.name === ALONE)) line.coming = undefined;
    Object.assign(line, { run: data.run, ahead: false });
    if (data.late === undefined) return;
    const late = data.late.split(',').filter(part => part);
    line.unwatch?.(); // Streamlit ends it with the page alone
    for (const part of [...line.wires.keys()].map(partOf)) place(part)?.setAttribute('aria-busy', late.includes(part));
    if (!late.length) land();
    return line.unwatch = late.length ? watch(late, data.empty) : () => {};
}
