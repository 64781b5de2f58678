import { headColor } from "./head-colors.ts";
import { type HeadsOptions, hasNegative, isHidden, placeIn, sizesOf, weightAt, writeWeight } from "./heads.ts";
import { shortLabel, shortText, textWidth } from "./labels.ts";
import { type Colors, HATCH, node, type Part, text } from "./svg.ts";
import { visible } from "./visible.ts";

const PITCH = 22;
const BAR = 12;
const GAP = 8;
const HEADING = 54;
const ROOM = 96;
const COLUMN = ROOM + 64;

/** One query's row as bars: a line for each key, a column for each head. */
export function barsSvg(options: HeadsOptions, { dark, ink }: Colors): Part {
  const { rowLabels, columnLabels, rowAxis = "query", columnAxis = "key", titles, reach = 1 } = options;
  const { heads, keys } = sizesOf(options);
  const { query } = placeIn(options);
  const labels = columnLabels.map(shortLabel);
  const left = labels.reduce((most, label) => Math.max(most, textWidth(label)), 48) + GAP;
  const isSigned = hasNegative(options, query);
  const scale = (isSigned ? ROOM / 2 : ROOM) / reach;
  const content = [
    text(`${rowAxis} ${visible(rowLabels[query] ?? "")}`, { y: 10, "font-weight": 600 }),
    text(`${columnAxis} ↓`, { x: left - GAP, y: HEADING - 8, "text-anchor": "end" }),
  ];
  for (let key = 0; key < keys; key++) {
    const y = HEADING + (key + 0.5) * PITCH;
    content.push(text(labels[key] ?? "", { x: left - GAP, y, "text-anchor": "end", "dominant-baseline": "central" }));
  }
  for (let head = 0; head < heads; head++) {
    const fill = headColor(head, dark);
    const x = left + head * COLUMN;
    const zero = isSigned ? x + ROOM / 2 : x;
    content.push(node("rect", { x, y: HEADING - 31, width: 9, height: 9, fill }));
    const { name = "", note = "" } = titles[head] ?? {};
    content.push(text(name, { x: x + 14, y: HEADING - 22 }), text(shortText(note, 20), { x: x + 14, y: HEADING - 8 }));
    for (let key = 0; key < keys; key++) {
      const value = weightAt(options, head, query, key);
      const y = HEADING + (key + 0.5) * PITCH;
      const bar = { y: y - BAR / 2, height: BAR };
      if (isHidden(options, head, query, key)) content.push(node("rect", { x, width: ROOM, ...bar, fill: HATCH }));
      const length = Math.max(-ROOM, Math.min(ROOM, Number.isNaN(value) ? 0 : value * scale));
      content.push(node("rect", { x: Math.min(zero, zero + length), width: Math.abs(length), ...bar, fill }));
      content.push(node("rect", { x: zero, y: y - BAR / 2 - 2, width: 1, height: BAR + 4, fill }));
      const number = { x: x + ROOM + 40, y, "text-anchor": "end", "dominant-baseline": "central", fill: ink };
      content.push(text(writeWeight(options, value), number));
    }
  }
  return { width: left + heads * COLUMN, height: HEADING + keys * PITCH, content };
}
