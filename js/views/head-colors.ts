// Found by search, so that any two of a theme's sixteen stay apart for normal, protan, deutan and tritan eyes and every one
// stands out from the page; the first few are the furthest apart.
const LIGHT = [
  "#08a85c",
  "#070971",
  "#b15ef3",
  "#703903",
  "#495082",
  "#521004",
  "#7767ac",
  "#b74711",
  "#4c3649",
  "#f96318",
  "#300ea0",
  "#7531c6",
  "#0a715e",
  "#918bc9",
  "#3c1140",
  "#588988",
] as const;

const DARK = [
  "#de802d",
  "#6766fa",
  "#71f4fc",
  "#f0e310",
  "#0fb8c9",
  "#ba4984",
  "#9ecc97",
  "#d4230b",
  "#8149b7",
  "#eeb001",
  "#8b8dfc",
  "#bd8585",
  "#58d0ff",
  "#adf0ae",
  "#8873c1",
  "#007a3a",
] as const;

/** A head's colour. There are sixteen; from the seventeenth head on they come again. */
export function headColor(head: number, dark: boolean): string {
  const colors = dark ? DARK : LIGHT;
  return colors[head % colors.length] as string;
}
