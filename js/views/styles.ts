const CSS = `
.attn-surface { position: relative; inline-size: 100%; overflow: clip; overflow-clip-margin: 6px; }
.attn-surface canvas { display: block; max-inline-size: 100%; }
.attn-surface canvas + canvas { position: absolute; inset: 0; }
.attn-scroll { position: absolute; scrollbar-width: thin; overscroll-behavior: contain auto; border-radius: 1px; }
.attn-scroll:has(:focus-visible) { outline: 2px solid var(--attn-focus, #1f62c9); outline-offset: 3px; }
.attn-grid { position: relative; cursor: crosshair; outline: none; touch-action: manipulation; -webkit-tap-highlight-color: transparent; }
.attn-grid.attn-paint { touch-action: pinch-zoom; cursor: cell; }
.attn-cell { position: absolute; pointer-events: none; }
.attn-live { position: absolute; inline-size: 1px; block-size: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.attn-heads { display: grid; align-items: end; gap: 14px 28px; }
.attn-head { min-inline-size: 0; margin: 0; container-type: inline-size; }
.attn-head figcaption { display: flex; gap: 0.6em; align-items: baseline; margin-block-end: 2px; }
.attn-head figcaption:has(b:empty) { display: none; }
.attn-head figcaption b { font-weight: 600; white-space: nowrap; }
.attn-head figcaption span { opacity: 0.78; }
@container (max-width: 220px) { .attn-head figcaption { flex-direction: column; gap: 0; } }
.attn-toggles { display: flex; flex-wrap: wrap; gap: 4px 14px; margin-block-end: 10px; }
.attn-toggles button { display: flex; gap: 0.5em; align-items: center; min-block-size: 24px; padding: 0; border: 0; background: none; color: inherit; font: inherit; cursor: pointer; }
.attn-toggles i { inline-size: 12px; block-size: 12px; border: 2px solid var(--attn-head); forced-color-adjust: none; }
.attn-toggles [aria-pressed="true"] i { background: var(--attn-head); }
.attn-toggles b { font-weight: 600; }
.attn-toggles [aria-pressed="false"] b { font-weight: 400; }
.attn-toggles span { opacity: 0.78; }
.attn-toggles :focus-visible { outline: 2px solid var(--attn-focus, #1f62c9); outline-offset: 2px; }
.attn-zoom { display: flex; flex-wrap: wrap; gap: 4px 12px; align-items: baseline; justify-content: flex-end; margin-block-end: 6px; font-variant-numeric: tabular-nums; }
.attn-zoom[hidden] { display: none; }
.attn-zoom button { min-inline-size: 26px; min-block-size: 24px; padding: 0; border: 0; background: none; color: inherit; font: inherit; cursor: pointer; }
.attn-zoom label { display: flex; gap: 0.4em; align-items: baseline; color: inherit; opacity: 0.9; }
.attn-zoom input { inline-size: 4.6em; padding: 1px 0; border: 0; border-block-end: 1px solid color-mix(in srgb, currentColor 55%, transparent); border-radius: 0; background: none; color: inherit; font: inherit; text-align: end; }
.attn-zoom [aria-invalid="true"] { border-block-end-width: 2px; }
.attn-zoom :focus-visible { outline: 2px solid var(--attn-focus, #1f62c9); outline-offset: 1px; }
.attn-steps { display: grid; grid-template-columns: minmax(0, 1fr); gap: 9px; margin: 0; padding: 0; list-style: none; }
.attn-steps h3 { display: flex; justify-content: space-between; gap: 1em; margin: 0 0 1px; font: inherit; font-weight: 600; }
.attn-steps :is(sup, sub) { font-size: 0.78em; line-height: 0; }
.attn-steps p { margin: 0; font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.attn-terms { --paper: var(--attn-paper, Canvas); max-block-size: calc(26 * 1.36em + 2px); overflow: auto; scrollbar-width: thin; background: linear-gradient(var(--paper), var(--paper)) bottom / 100% 3.4em no-repeat local, linear-gradient(transparent, color-mix(in srgb, currentColor 22%, transparent)) 0 calc(100% - 1.36em) / 100% 1.1em no-repeat; }
.attn-terms:focus-visible { outline: 2px solid var(--attn-focus, #1f62c9); outline-offset: 2px; }
.attn-terms table { inline-size: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
.attn-terms th, .attn-terms td { padding: 0 0 0 0.5em; text-align: end; font-weight: 400; line-height: 1.36; white-space: nowrap; }
.attn-terms th:first-child { padding-inline-start: 0; text-align: start; max-inline-size: 7em; overflow: hidden; text-overflow: ellipsis; unicode-bidi: isolate; }
.attn-terms thead th { position: sticky; inset-block-start: 0; background: var(--paper); color: color-mix(in srgb, currentColor 78%, transparent); }
.attn-terms tfoot { position: sticky; inset-block-end: 0; background: var(--paper); }
.attn-terms tr[data-zero] { opacity: 0.72; }
.attn-terms tr[aria-current] > * { font-weight: 600; }
.attn-terms tfoot > tr > * { border-block-start: 1px solid color-mix(in srgb, currentColor 30%, transparent); }
.attn-legend { display: flex; flex-wrap: wrap; gap: 0 0.5em; align-items: center; min-inline-size: 11em; font-variant-numeric: tabular-nums; }
.attn-head .attn-legend { min-inline-size: 0; }
.attn-legend-swatch { display: flex; margin-inline-start: 0.4em; gap: 0.5em; align-items: center; white-space: nowrap; }
.attn-legend-swatch canvas { outline: 1px solid color-mix(in srgb, currentColor 25%, transparent); }
`;

const adopted = new WeakSet<Document | ShadowRoot>();

/** Brings the views' style sheet into the document or shadow root that holds the element, once. */
export function adoptStyles(element: HTMLElement): void {
  const root = element.getRootNode();
  const home = root instanceof ShadowRoot ? root : document;
  if (adopted.has(home)) return;
  adopted.add(home);
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(CSS);
  home.adoptedStyleSheets = [...home.adoptedStyleSheets, sheet];
}
