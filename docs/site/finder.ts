// Finds places in the documentation. A module of its own, which a page loads when somebody begins to search.

import places from "virtual:places";
import MiniSearch, { type SearchOptions } from "minisearch";

/** A heading, an export, a method or an option, and what is said there. */
export interface Place {
  readonly address: string;
  readonly title: string;
  readonly page: string;
  /** That of its heading; 4 for an option. */
  readonly level: number;
  readonly group: string;
  readonly text: string;
}

const words = (text: string) => text.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
/** Of `multiHeadAttention` also `multi`, `Head` and `Attention`. */
const parts = (word: string) => {
  const inside = word.split(/(?<=[\p{Ll}\p{N}])(?=\p{Lu})/u);
  return inside.length > 1 ? [word, ...inside] : inside;
};

const index = new MiniSearch<Place>({
  idField: "address",
  fields: ["title", "page", "text"],
  tokenize: (text) => words(text).flatMap(parts),
});
index.addAll(places);
const byAddress = new Map(places.map((place) => [place.address, place]));

const OPTIONS: SearchOptions = {
  tokenize: words,
  boost: { title: 6, page: 2 },
  prefix: true,
  fuzzy: (term) => (term.length > 3 ? 0.25 : false),
  weights: { prefix: 0.4, fuzzy: 0.2 },
  boostDocument: (address, term) => weightOf(byAddress.get(address), term),
};

/** What is called just so comes first, and pages and exports before options. */
function weightOf(place: Place | undefined, term: string): number {
  const { title = "", level = 4 } = place ?? {};
  return (title.replace("()", "").toLowerCase() === term ? 4 : 1) * (1.6 - 0.2 * level);
}

const MOST = 12;

/** The best places for a query: those that have all its words, or where none has, some of them. */
export function find(query: string): Place[] {
  const all = index.search(query, { ...OPTIONS, combineWith: "AND" });
  const found = all.length > 0 ? all : index.search(query, OPTIONS);
  return found.slice(0, MOST).flatMap(({ id }) => byAddress.get(id) ?? []);
}
