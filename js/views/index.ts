// What `import ... from "attnscope/views"` gives. No view needs the engine.
export { type CellInspectorOptions, cellInspector, type InspectorText } from "./cell-inspector.ts";
export { type Axes, type HeadGridOptions, headGrid } from "./head-grid.ts";
export type { HeatLook, HeatOptions, Shown } from "./heat-picture.ts";
export { type HeatmapOptions, heatmap } from "./heatmap.ts";
export { type LegendOptions, legend } from "./legend.ts";
export { type MaskEditorOptions, maskEditor } from "./mask-editor.ts";
export type { Cell, Matrix } from "./matrix.ts";
export { number } from "./number.ts";
export { isDark, type PaletteName, palette, step } from "./palette.ts";
export type { Outside } from "./peaks.ts";
export type { ColorScale, ScaleKind } from "./scale.ts";
export { type ThumbnailOptions, thumbnail } from "./thumbnail.ts";
export type { CreateView, View } from "./view.ts";
export { type Look, Viewport } from "./viewport.ts";
export { visible } from "./visible.ts";
export type { ZoomText } from "./zoom-bar.ts";
