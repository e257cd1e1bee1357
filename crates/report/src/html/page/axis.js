// Times as text, and the axis above the bars.

const UNITS = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

const unitOf = (nanos) => UNITS.find(([, size]) => nanos >= size) ?? UNITS[UNITS.length - 1];

/** A duration with three digits. */
function duration(nanos) {
  const rounded = nanos < 1e12 ? Number(nanos.toPrecision(3)) : nanos;
  const [unit, size] = unitOf(rounded);
  return `${rounded < 1e12 ? Number((rounded / size).toPrecision(3)) : Math.round(rounded / size)} ${unit}`;
}

/** Ticks of a stretch of time, at most this many: their times, and their labels in one unit. */
function ticks(from, length, countMax) {
  const rough = length / Math.max(countMax, 1);
  const power = 10 ** Math.floor(Math.log10(Math.max(rough, 1)));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough) ?? rough);
  const [unit, size] = unitOf(Math.max(from + length, 1));
  const digits = Math.min(9, Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-9)));
  const made = [];
  for (let at = Math.ceil(from / step) * step; at <= from + length && made.length <= countMax; at += step) {
    made.push({ at, label: at === 0 ? "0" : `${(at / size).toFixed(digits)} ${unit}` });
  }
  return { step, made };
}
