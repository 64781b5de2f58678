// What `import ... from "attnscope/views"` gives. No view needs the engine.

export type { Outside } from "../device.ts";
export {
  type CellInspectorOptions,
  type Combination,
  cellInspector,
  type InspectorStep,
  type InspectorText,
} from "./cell-inspector.ts";
export type { PictureView } from "./exported.ts";
export { headColor } from "./head-colors.ts";
export { type Axes, type HeadGridOptions, headGrid } from "./head-grid.ts";
export { type HeadLinesOptions, headLines } from "./head-lines.ts";
export type { HeadsOptions } from "./heads.ts";
export type { HeatLook, HeatOptions, Shown } from "./heat-picture.ts";
export { type HeatmapOptions, heatmap } from "./heatmap.ts";
export { type LegendOptions, legend } from "./legend.ts";
export { type MaskEditorOptions, maskEditor } from "./mask-editor.ts";
export type { Cell, Matrix } from "./matrix.ts";
export { number } from "./number.ts";
export { isDark, type Palette, type PaletteName, palette, type Rgb, step } from "./palette.ts";
export { rowBars } from "./row-bars.ts";
export type { ColorScale, ScaleKind } from "./scale.ts";
export { type Headed, type Pictured, sideBySide } from "./side-by-side.ts";
export { type ThumbnailOptions, thumbnail } from "./thumbnail.ts";
export type { CreateView, View } from "./view.ts";
export { type Look, Viewport } from "./viewport.ts";
export { visible } from "./visible.ts";
export type { ZoomText } from "./zoom-bar.ts";
