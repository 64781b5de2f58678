// How the time of a pass grows with tokens, width and heads: a fit of four costs, and a plot of it.
import { median } from "./rounds.mjs";

const MIDDLE = { n: 256, d: 512, h: 8 };
const AXES = {
  n: [32, 64, 128, 256, 512, 1024],
  d: [64, 128, 256, 512, 1024],
  h: [1, 2, 4, 8, 16, 32],
};

export const GROWTH = Object.entries(AXES).flatMap(([axis, values]) =>
  values.map((value) => ({ work: "mha", size: `${axis} = ${value}`, axis, ...MIDDLE, [axis]: value, causal: false })),
);

/** What a pass consists of, with how often each part is done. */
const PARTS = {
  projections: ({ n, d }) => 8 * n * d * d,
  "scores and contexts": ({ n, d }) => 4 * n * n * d,
  weights: ({ n, h }) => h * n * n,
  "the call": () => 1,
};

/** Milliseconds of each part done once: the least squares of the relative errors, parts that cost nothing left out. */
function fit(points, names = Object.keys(PARTS)) {
  const rows = points.map(({ spec, time }) => names.map((name) => PARTS[name](spec) / time));
  const normal = names.map((_, i) => names.map((_, j) => rows.reduce((sum, row) => sum + row[i] * row[j], 0)));
  const costs = solve(
    normal,
    names.map((_, i) => rows.reduce((sum, row) => sum + row[i], 0)),
  );
  const worth = names.filter((_, i) => costs[i] > 0);
  if (worth.length < names.length) return fit(points, worth);
  return Object.fromEntries(names.map((name, i) => [name, costs[i]]));
}

/** Gauss's elimination; the matrix is positive definite. */
function solve(matrix, right) {
  const rows = matrix.map((row, i) => [...row, right[i]]);
  for (const [i, pivot] of rows.entries()) {
    for (const row of rows.slice(i + 1)) {
      const factor = row[i] / pivot[i];
      for (let j = i; j < row.length; j++) row[j] -= factor * pivot[j];
    }
  }
  const found = [];
  for (const [i, row] of [...rows.entries()].toReversed()) {
    const rest = row.slice(i + 1, -1).reduce((sum, factor, j) => sum + factor * found[i + 1 + j], 0);
    found[i] = (row.at(-1) - rest) / row[i];
  }
  return found;
}

const estimate = (costs, spec) =>
  Object.entries(costs).reduce((sum, [name, cost]) => sum + cost * PARTS[name](spec), 0);

/** `{ text, svg }` of races of `GROWTH`, for one variant of ours. */
export function growth(races, variant) {
  const points = races.map(({ spec, entrants }) => ({
    spec,
    time: median(entrants.find((entrant) => entrant.variant === variant).samples),
  }));
  const costs = fit(points);
  const off = points.map(({ spec, time }) => Math.abs(estimate(costs, spec) / time - 1));
  const head = ["n", "d", "h", "measured ms", "fitted ms", ...Object.keys(costs)];
  const line = ({ spec, time }) => {
    const whole = estimate(costs, spec);
    const shares = Object.entries(costs).map(
      ([name, cost]) => `${Math.round((100 * cost * PARTS[name](spec)) / whole)} %`,
    );
    return [spec.n, spec.d, spec.h, time.toPrecision(3), whole.toPrecision(3), ...shares];
  };
  const rate = (name) =>
    costs[name] ? `${name} at ${(1e-6 / costs[name]).toFixed(1)} GFLOP/s` : `${name} for nothing`;
  const text = [
    `attnscope (${variant}): ${rate("projections")}, ${rate("scores and contexts")},`,
    `${((costs.weights ?? 0) * 1e6).toFixed(2)} ns for each weight and ${((costs["the call"] ?? 0) * 1e3).toFixed(0)} µs for a call; off by ${Math.round(100 * median(off))} % in the median, ${Math.round(100 * Math.max(...off))} % at most`,
    "",
    ...[head, head.map(() => "---:"), ...points.map(line)].map((cells) => `| ${cells.join(" | ")} |`),
  ].join("\n");
  return { text, svg: plot(points, costs) };
}

const PANEL = { width: 250, height: 220, gap: 50 };

/** Three panels, an axis each, both scales logarithmic: dots are measured, the line is the fit. */
function plot(points, costs) {
  const times = points.map(({ time }) => time);
  const low = 10 ** Math.floor(Math.log10(Math.min(...times)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...times)));
  const y = (time) => (PANEL.height * (1 - Math.log(time / low) / Math.log(high / low))).toFixed(1);
  const decades = Array.from({ length: Math.round(Math.log10(high / low)) + 1 }, (_, i) => low * 10 ** i);
  const panels = Object.entries(AXES).map(([axis, values], index) => {
    const x = (value) => ((PANEL.width * Math.log(value / values[0])) / Math.log(values.at(-1) / values[0])).toFixed(1);
    const steps = Array.from({ length: 41 }, (_, i) => values[0] * (values.at(-1) / values[0]) ** (i / 40));
    const curve = steps.map((value) => `${x(value)},${y(estimate(costs, { ...MIDDLE, [axis]: value }))}`).join(" ");
    const dots = points.filter(({ spec }) => spec.axis === axis);
    const others = Object.entries(MIDDLE).filter(([name]) => name !== axis);
    return `<g transform="translate(${50 + index * (PANEL.width + PANEL.gap)} 40)">
  <text x="0" y="-16" font-weight="bold">${axis}</text>
  <text x="20" y="-16">${others.map(([name, value]) => `${name} = ${value}`).join(", ")}</text>
  ${decades.map((time) => `<path d="M0 ${y(time)}h${PANEL.width}" stroke="#ddd"/><text x="-6" y="${y(time)}" dy="4" text-anchor="end">${time}</text>`).join("\n  ")}
  ${values.map((value) => `<text x="${x(value)}" y="${PANEL.height + 18}" text-anchor="middle">${value}</text>`).join("\n  ")}
  <polyline points="${curve}" fill="none" stroke="#0b6e99" stroke-width="1.5"/>
  ${dots.map(({ spec, time }) => `<circle cx="${x(spec[axis])}" cy="${y(time)}" r="3.5" fill="#c2410c"/>`).join("\n  ")}
</g>`;
  });
  const [width, height] = [60 + 3 * (PANEL.width + PANEL.gap), PANEL.height + 80];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12" fill="#222">
<title>Milliseconds of a pass over n, d and h: measured, and the fit</title>
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="14">ms</text>
${panels.join("\n")}
</svg>
`;
}
