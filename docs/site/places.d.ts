/** What the search looks through, written by `pages.ts`. */
declare module "virtual:places" {
  const places: readonly import("./finder.ts").Place[];
  export default places;
}
