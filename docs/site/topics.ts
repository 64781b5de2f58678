// The pages of the reference, and which exports each tells of.

/** A page of the reference: some exports of an entry, in the order in which they are read. */
export interface Topic {
  readonly name: string;
  readonly title: string;
  readonly entry: string;
  readonly file: string;
  readonly intro?: string;
  readonly exports: readonly string[];
}

const main = { entry: "attnscope", file: "index" };
const views = { entry: "attnscope/views", file: "views/index" };

/** Every export stands on one page; the build fails over one that is forgotten. */
export const TOPICS: readonly Topic[] = [
  {
    ...main,
    name: "api-engine",
    title: "Engine",
    exports: [
      "createEngine",
      "EngineOptions",
      "Engine",
      "EngineInfo",
      "BackendOption",
      "WatchOptions",
      "ReuseOptions",
      "Reusable",
      "FileFormat",
      "WasmSource",
    ],
  },
  {
    ...main,
    name: "api-attention",
    title: "Attention",
    exports: [
      "MultiHeadAttention",
      "MultiHeadAttentionOptions",
      "AttentionForwardOptions",
      "ForwardResult",
      "ScaledDotProductOptions",
      "AttentionResult",
      "LazyAttentionResult",
      "StateDict",
      "LoadOptions",
      "EmptyRow",
      "Positions",
      "Init",
      "Asked",
    ],
  },
  {
    ...main,
    name: "api-transformer",
    title: "Transformer blocks",
    exports: [
      "TransformerBlock",
      "Transformer",
      "TransformerOptions",
      "ForwardOptions",
      "StackResult",
      "DecoderBlock",
      "Decoder",
      "DecoderForwardOptions",
      "DecoderBlockResult",
      "DecoderResult",
      "Activation",
      "NormKind",
    ],
  },
  {
    ...main,
    name: "api-masks",
    title: "Masks",
    exports: ["mask", "Mask", "MaskMatrix", "MaskAxes", "MaterializedMask", "MaskSize", "TorchConvention"],
  },
  {
    ...main,
    name: "api-traces",
    title: "Traces",
    exports: [
      "Trace",
      "Stage",
      "Explanation",
      "Term",
      "Operation",
      "LayerOption",
      "RemaskOptions",
      "Remasked",
      "LazyOption",
      "LazyResult",
      "Passed",
      "DeviceTensor",
      "TraceJson",
    ],
  },
  {
    ...main,
    name: "api-analysis",
    title: "Analysis",
    exports: [
      "Analysis",
      "Tokens",
      "LabelOptions",
      "OffsetOption",
      "HeadLabel",
      "HeadPattern",
      "PatternScores",
      "MaskEffect",
      "CellChange",
      "Moved",
    ],
  },
  { ...main, name: "api-tensors", title: "Tensors", exports: ["tensor", "Tensor", "TensorLike", "NestedArray"] },
  {
    ...main,
    name: "api-operations",
    title: "Operations",
    exports: ["Ops", "AxisOption", "LayerNormOptions", "RmsNormOptions", "RotaryOptions"],
  },
  { ...main, name: "api-random", title: "Random numbers", exports: ["Generator"] },
  { ...main, name: "api-selection", title: "Selection", exports: ["Selection", "Place"] },
  {
    ...main,
    name: "api-errors",
    title: "Errors",
    exports: ["AttnError", "ErrorCodes", "ErrorCode", "ErrorDetails"],
  },
  {
    entry: "attnscope/slim",
    file: "slim",
    name: "api-slim",
    title: "Engine from parts",
    intro:
      "Everything that `attnscope` exports, with a `createEngine` that takes the parts of the engine from its caller.",
    exports: ["createEngine", "SlimEngineOptions"],
  },
  {
    ...views,
    name: "api-views",
    title: "Views",
    intro: "Each view is drawn in the [gallery](gallery.html), above the code that draws it.",
    exports: [
      "View",
      "PictureView",
      "CreateView",
      "headGrid",
      "HeadGridOptions",
      "Axes",
      "heatmap",
      "HeatmapOptions",
      "headLines",
      "HeadLinesOptions",
      "rowBars",
      "HeadsOptions",
      "maskEditor",
      "MaskEditorOptions",
      "cellInspector",
      "CellInspectorOptions",
      "InspectorText",
      "thumbnail",
      "ThumbnailOptions",
      "legend",
      "LegendOptions",
      "sideBySide",
      "Headed",
      "Pictured",
    ],
  },
  {
    ...views,
    name: "api-looks",
    title: "Colours, zoom and labels",
    exports: [
      "HeatOptions",
      "HeatLook",
      "Shown",
      "Outside",
      "ColorScale",
      "ScaleKind",
      "palette",
      "Palette",
      "PaletteName",
      "Rgb",
      "step",
      "headColor",
      "isDark",
      "number",
      "visible",
      "Viewport",
      "Look",
      "ZoomText",
      "Matrix",
      "Cell",
    ],
  },
  {
    entry: "attnscope/elements",
    file: "elements",
    name: "api-elements",
    title: "Custom elements",
    intro:
      '`import "attnscope/elements"` registers these tags. [In pages, slides and notebooks](embedding.html) shows more of them.\n\n<script type="module">import "attnscope/elements";</script>',
    exports: [
      "AttnHeads",
      "AttnLines",
      "AttnHeatmap",
      "AttnMask",
      "AttnScope",
      "ElementEvents",
      "ScopeEvents",
      "FrameMessage",
    ],
  },
];

/** The pages on which exports stand, by their names. */
export const PLACES: ReadonlyMap<string, string> = new Map(
  TOPICS.flatMap(({ name, exports }) => exports.map((thing) => [thing, `${name}.html#${thing}`])),
);
