import { headColor } from "./head-colors.ts";
import { type HeadsOptions, placeIn, sizesOf, weightAt } from "./heads.ts";
import { shortLabel, textWidth } from "./labels.ts";
import { aside, BEND, besides, LEAST, LEAST_ASIDE, lineLook, PITCH } from "./line-look.ts";
import { type Colors, node, type Part, text } from "./svg.ts";

const SPAN = 320;
const GAP = 8;
const HEADING = 22;

function curve(from: number, y0: number, to: number, y1: number): string {
  const bend = (to - from) * BEND;
  const numbers = [from + bend, y0, to - bend, y1, to, y1].map((value) => Math.round(value * 100) / 100);
  return `M${from} ${Math.round(y0 * 100) / 100}C${numbers.join(" ")}`;
}

/** Lines from queries on the left to keys on the right, the selected query's strong, and whose colour is whose. */
export function linesSvg(options: HeadsOptions, shown: ReadonlySet<number>, { dark }: Colors): readonly Part[] {
  const { rowAxis = "query", columnAxis = "key", reach = 1, titles } = options;
  const { heads, queries, keys } = sizesOf(options);
  const place = placeIn(options);
  const queryLabels = options.rowLabels.map(shortLabel);
  const keyLabels = options.columnLabels.map(shortLabel);
  const widest = (labels: readonly string[]) => labels.reduce((most, label) => Math.max(most, textWidth(label)), 40);
  const left = widest(queryLabels);
  const [from, to] = [left + GAP, left + GAP + SPAN];
  const middle = (i: number) => HEADING + (i + 0.5) * PITCH;
  const ordered = [...shown].filter((head) => head < heads).sort((a, b) => a - b);

  const lines: string[] = [];
  const draw = (head: number, query: number, least: number, strength: number) => {
    for (let key = 0; key < keys; key++) {
      const value = weightAt(options, head, query, key);
      if (!(Math.abs(value) >= least * reach)) continue;
      const look = lineLook(value, reach, heads, strength);
      const beside = besides(head, heads);
      lines.push(
        node("path", {
          d: curve(from, middle(query) + beside, to, middle(key) + beside),
          stroke: headColor(head, dark),
          "stroke-width": look.width,
          "stroke-opacity": look.opacity,
          "stroke-dasharray": look.dash.length > 0 ? look.dash.join(" ") : undefined,
        }),
      );
    }
  };
  for (const head of ordered) {
    for (let query = 0; query < queries; query++)
      if (query !== place.query) draw(head, query, LEAST_ASIDE, aside(ordered.length, queries));
  }
  for (const head of ordered) draw(head, place.query, LEAST, 1);

  const label = (words: string, i: number, x: number, anchor: string, isOn: boolean) =>
    text(words, {
      x,
      y: middle(i),
      "text-anchor": anchor,
      "dominant-baseline": "central",
      "font-weight": isOn ? 600 : undefined,
    });
  const picture: Part = {
    width: to + GAP + widest(keyLabels),
    height: HEADING + Math.max(queries, keys) * PITCH,
    content: [
      text(rowAxis, { x: left, y: 12, "text-anchor": "end" }),
      text(columnAxis, { x: to + GAP, y: 12 }),
      node("g", { fill: "none" }, lines),
      ...queryLabels.map((words, i) => label(words, i, left, "end", i === place.query)),
      ...keyLabels.map((words, i) => label(words, i, to + GAP, "start", i === place.key)),
    ],
  };
  const names = ordered.map((head) => [titles[head]?.name, titles[head]?.note].filter(Boolean).join(" · "));
  const legend: Part = {
    width: names.reduce((most, name) => Math.max(most, textWidth(name)), 0) + 18,
    height: ordered.length * 18,
    content: ordered.flatMap((head, i) => [
      node("rect", { y: i * 18, width: 12, height: 12, fill: headColor(head, dark) }),
      text(names[i] ?? "", { x: 18, y: i * 18 + 10 }),
    ]),
  };
  return [picture, legend];
}
