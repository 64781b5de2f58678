// What `import ... from "attnscope/views"` gives. No view needs the engine.
export { type CellInspectorOptions, cellInspector, type InspectorText } from "./cell-inspector.ts";
export { type Axes, type HeadGridOptions, headGrid } from "./head-grid.ts";
export { type HeatmapOptions, heatmap } from "./heatmap.ts";
export { type LegendOptions, legend } from "./legend.ts";
export { type MaskEditorOptions, maskEditor } from "./mask-editor.ts";
export type { Cell } from "./matrix-drawing.ts";
export { number } from "./number.ts";
export { isDark, type PaletteName, palette, step } from "./palette.ts";
export type { Matrix } from "./raster.ts";
export { type ThumbnailOptions, thumbnail } from "./thumbnail.ts";
export type { CreateView, View } from "./view.ts";
export { visible } from "./visible.ts";
