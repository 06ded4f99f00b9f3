export default function ({ data, setTriggerValue }) {
    (window.sliderWires ??= new Map()).set(data.name, report => setTriggerValue('moved', report));
    window.sliderHeard?.(data.heard);
}
