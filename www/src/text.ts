import type { EngineInfo, Stage } from "attnscope";
import type { InspectorText } from "attnscope/views";
import type { Problem } from "./bench.svelte.ts";
import type { HeadRole } from "./readable-heads.ts";

const CODE_NAMES: Partial<Record<Stage, string>> = { query: "Q", key: "K", value: "V", input: "X" };

/** What a mask took: from one query's row, and from all rows of its head. */
interface Freed {
  readonly head: number;
  readonly query: string;
  readonly row: string;
  readonly all: string;
  readonly rows: number;
}

const en = {
  tagline: "An attention microscope: type a sentence, paint a mask, read every number.",
  language: "Language",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },

  sentence: "Sentence",
  tokens: (query: string, head: number) => `What “${query}” attends to in head ${head}. Choose a token to ask another.`,
  askToken: (token: string) => `query ${token}`,

  source: "Numbers from",
  sources: { readable: "Readable heads", torch: "PyTorch seed" },
  draw: "X drawn by",
  seed: "Seed",
  nHeads: "Heads",
  dModel: "d_model",

  stages: "Stages of the pass",
  stage: {
    input: "input",
    positions: "positions",
    memory: "memory",
    key_input: "key input",
    value_input: "value input",
    query: "query",
    key: "key",
    value: "value",
    normed_query: "normed query",
    normed_key: "normed key",
    rotated_query: "rotated query",
    rotated_key: "rotated key",
    past_key: "past key",
    past_value: "past value",
    all_keys: "all keys",
    all_values: "all values",
    scores: "scores",
    scaled: "scaled",
    capped: "capped",
    masked: "masked",
    weights: "weights",
    dropped_weights: "dropped weights",
    context: "context",
    concat: "concat",
    output: "output",
    dropped_output: "dropped output",
    residual: "residual",
    norm: "norm",
    cross_query: "cross query",
    cross_key: "cross key",
    cross_value: "cross value",
    cross_normed_query: "normed cross query",
    cross_normed_key: "normed cross key",
    cross_scores: "cross scores",
    cross_scaled: "cross scaled",
    cross_masked: "cross masked",
    cross_weights: "cross weights",
    cross_dropped_weights: "dropped cross weights",
    cross_context: "cross context",
    cross_concat: "cross concat",
    cross_output: "cross output",
    cross_dropped_output: "dropped cross output",
    residual2: "residual",
    norm2: "norm",
    hidden: "hidden",
    gate: "gate",
    activation: "activation",
    gated: "gated",
    dropped_activation: "dropped activation",
    feed_forward: "feed-forward",
    dropped_feed_forward: "dropped feed-forward",
    residual3: "residual",
    norm3: "norm",
    final_norm: "final norm",
  } satisfies Record<Stage, string> as Record<Stage, string>,
  stageNote: {
    input: "One row a token: which word it is, and where it stands.",
    query: "What each token asks for.",
    key: "What each token answers to.",
    value: "What each token hands on.",
    scores: "How well each query meets each key: q · k.",
    scaled: "The scores, divided by √d_k.",
    masked: "The scaled scores; what the mask hides is out of reach.",
    weights: "How each query shares its attention among the keys.",
    context: "The values, mixed by the weights.",
    concat: "The heads' contexts, side by side.",
    output: "The heads put together by W_O.",
  } as Partial<Record<Stage, string>>,
  axis: { query: "query", key: "key", feature: "feature" },
  head: (head: number) => `head ${head}`,
  role: {
    previous: "the previous token",
    first: "the first token",
    same: "the same word",
    even: "all evenly",
  } satisfies Record<HeadRole, string> as Record<HeadRole, string>,
  gridLabel: (title: string, stage: string, row: string, column: string) =>
    `${title}, ${stage}: rows are ${row}, columns are ${column}`,
  cell: (title: string, row: string, column: string, value: string) => `${title}, ${row}, ${column}, ${value}`,
  axisValue: {
    query: (t: string) => `query ${t}`,
    key: (t: string) => `key ${t}`,
    feature: (t: string) => `feature ${t}`,
  },

  compare: "Show",
  comparing: { with: "with mask", without: "without", difference: "difference", all: "side by side" },
  sideBySide: { without: "without mask", with: "with mask", difference: "difference" },
  look: "Look",
  looks: { matrix: "matrix", lines: "lines", bars: "bars" },
  linesLabel: (stage: string) => `${stage} as lines from queries to keys: rows are queries, columns are keys`,
  barsLabel: (stage: string) => `${stage} of the selected query as bars: rows are keys, columns are heads`,
  scale: "Colours",
  scales: { linear: "linear", log: "logarithmic", row: "row maximum" },
  range: "Range of the colours",
  ranges: { shared: "shared", each: "per head" },
  savePicture: (format: string) => `save the picture as ${format}`,
  hidden: "hidden",
  rowMaximum: "row maximum",
  zoom: {
    zoomIn: "zoom in",
    zoomOut: "zoom out",
    whole: "the whole matrix",
    goTo: (axis: string) => `${axis} number, from 0`,
  },
  freed: ({ head, query, row, all, rows }: Freed) =>
    `Head ${head}: the mask freed ${row} of the attention of query “${query}”, and ${all} of ${rows} over all rows.`,
  emptyRow: (head: number, query: string) =>
    `“${query}” may attend to nothing: with −1e9 its weights come out even, with −∞ they are NaN (head ${head}).`,

  mask: "Mask",
  maskHint: "Click or drag to hide and show. Hatched is hidden.",
  presets: { none: "none", causal: "causal", padding: "padding", painted: "painted" },
  padded: "Padding tokens at the end",
  maskGrid: "Mask for all heads: rows are queries, columns are keys; the space bar turns a cell over",
  maskCell: (query: string, key: string, allowed: boolean) =>
    `query ${query}, key ${key}, ${allowed ? "may attend" : "hidden"}`,
  fill: "Hidden scores become",
  fills: { "-1e9": "−1e9", "-inf": "−∞" },
  convention: "In PyTorch",
  conventions: { sdpa: "True = keep", mha: "True = hide", additive: "added" },
  noMaskCode: "attn_mask = None",

  inspector: "How this number is made",
  program: "The same numbers in PyTorch",
  copy: "Copy",
  copied: "Copied",

  status: ({ backend, kernel, threads, version }: EngineInfo) =>
    `${backend} · ${kernel} · ${threads} ${threads === 1 ? "thread" : "threads"} · attnscope ${version}`,
  lastPass: (ms: string) => `last pass ${ms} ms`,
  starting: "Starting the engine …",
  problem: ({ code, message, found }: Problem): string => {
    if (code === "not_whole")
      return found.trim() === "" ? "Enter a whole number." : `“${found}” is not a whole number.`;
    if (code === "no_tokens") return "Type at least one word. The picture is that of the last sentence.";
    return message;
  },

  inspect: {
    factors: (stage) => {
      switch (stage) {
        case "scores":
          return { over: "d", left: "q", right: "k" };
        case "context":
          return { over: "key", left: "weight", right: "v" };
        case "output":
          return { over: "d", left: "concat", right: "W_O" };
        default:
          return { over: "d", left: "x", right: `W_${CODE_NAMES[stage] ?? ""}` };
      }
    },
    product: "product",
    bias: "bias",
    sum: "sum",
    key: "key",
    allowed: "allowed: unchanged",
    hidden: (fill) => `hidden: becomes ${fill}`,
    given: "given, not computed",
    more: (count) => `… and ${count} more`,
  } satisfies Omit<InspectorText, "stage"> as Omit<InspectorText, "stage">,
};

export type Text = typeof en;

const zh: Text = {
  tagline: "注意力显微镜：输入句子，涂画掩码，看清每一个数。",
  language: "语言",
  theme: "主题",
  themes: { system: "跟随系统", light: "浅色", dark: "深色" },

  sentence: "句子",
  tokens: (query, head) => `第 ${head} 个头中“${query}”关注谁。点选词元可换一个查询。`,
  askToken: (token) => `查询 ${token}`,

  source: "数值来源",
  sources: { readable: "可读的头", torch: "PyTorch 种子" },
  draw: "X 取自",
  seed: "种子",
  nHeads: "头数",
  dModel: "d_model",

  stages: "计算的各个阶段",
  stage: {
    input: "输入",
    positions: "位置",
    memory: "记忆",
    key_input: "键输入",
    value_input: "值输入",
    query: "查询",
    key: "键",
    value: "值",
    normed_query: "归一化查询",
    normed_key: "归一化键",
    rotated_query: "旋转查询",
    rotated_key: "旋转键",
    past_key: "过去的键",
    past_value: "过去的值",
    all_keys: "全部键",
    all_values: "全部值",
    scores: "分数",
    scaled: "缩放",
    capped: "截顶",
    masked: "掩码后",
    weights: "权重",
    dropped_weights: "丢弃后权重",
    context: "上下文",
    concat: "拼接",
    output: "输出",
    dropped_output: "丢弃后输出",
    residual: "残差",
    norm: "归一化",
    cross_query: "交叉查询",
    cross_key: "交叉键",
    cross_value: "交叉值",
    cross_normed_query: "归一化交叉查询",
    cross_normed_key: "归一化交叉键",
    cross_scores: "交叉分数",
    cross_scaled: "交叉缩放",
    cross_masked: "交叉掩码后",
    cross_weights: "交叉权重",
    cross_dropped_weights: "丢弃后交叉权重",
    cross_context: "交叉上下文",
    cross_concat: "交叉拼接",
    cross_output: "交叉输出",
    cross_dropped_output: "丢弃后交叉输出",
    residual2: "残差",
    norm2: "归一化",
    hidden: "隐藏层",
    gate: "门",
    activation: "激活",
    gated: "门控",
    dropped_activation: "丢弃后激活",
    feed_forward: "前馈",
    dropped_feed_forward: "丢弃后前馈",
    residual3: "残差",
    norm3: "归一化",
    final_norm: "末端归一化",
  },
  stageNote: {
    input: "每行一个词元：是哪个词，在哪个位置。",
    query: "每个词元在问什么。",
    key: "每个词元以什么应答。",
    value: "每个词元交出什么。",
    scores: "每个查询与每个键的契合程度：q · k。",
    scaled: "分数除以 √d_k。",
    masked: "缩放后的分数；被掩码遮住的够不着。",
    weights: "每个查询如何把注意力分给各个键。",
    context: "按权重混合的值。",
    concat: "各个头的上下文并排放在一起。",
    output: "W_O 把各个头合为一体。",
  },
  axis: { query: "查询", key: "键", feature: "特征" },
  head: (head) => `头 ${head}`,
  role: { previous: "前一个词元", first: "第一个词元", same: "相同的词", even: "平均分配" },
  gridLabel: (title, stage, row, column) => `${title}，${stage}：行为${row}，列为${column}`,
  cell: (title, row, column, value) => `${title}，${row}，${column}，${value}`,
  axisValue: { query: (t) => `查询 ${t}`, key: (t) => `键 ${t}`, feature: (t) => `特征 ${t}` },

  compare: "显示",
  comparing: { with: "有掩码", without: "无掩码", difference: "差值", all: "并排" },
  sideBySide: { without: "无掩码", with: "有掩码", difference: "差值" },
  look: "看法",
  looks: { matrix: "矩阵", lines: "连线", bars: "条形" },
  linesLabel: (stage) => `${stage}：从查询到键的连线；行为查询，列为键`,
  barsLabel: (stage) => `所选查询的${stage}：条形；行为键，列为头`,
  scale: "颜色",
  scales: { linear: "线性", log: "对数", row: "按行最大值" },
  range: "颜色的范围",
  ranges: { shared: "各头共用", each: "各头自用" },
  savePicture: (format) => `将图片存为 ${format}`,
  hidden: "遮住",
  rowMaximum: "行最大值",
  zoom: {
    zoomIn: "放大",
    zoomOut: "缩小",
    whole: "整个矩阵",
    goTo: (axis) => `${axis}编号，从 0 起`,
  },
  freed: ({ head, query, row, all, rows }) =>
    `头 ${head}：掩码释放了查询“${query}”的 ${row} 注意力，所有行合计 ${rows} 中的 ${all}。`,
  emptyRow: (head, query) => `“${query}”没有可关注的键：填 −1e9 时权重变为均匀，填 −∞ 时为 NaN（头 ${head}）。`,

  mask: "掩码",
  maskHint: "点击或拖动来涂画；斜线为遮住。",
  presets: { none: "无", causal: "因果", padding: "填充", painted: "手绘" },
  padded: "末尾的填充词元",
  maskGrid: "所有头共用的掩码：行为查询，列为键；空格键切换单元格",
  maskCell: (query, key, allowed) => `查询 ${query}，键 ${key}，${allowed ? "可关注" : "遮住"}`,
  fill: "被遮住的分数变为",
  fills: { "-1e9": "−1e9", "-inf": "−∞" },
  convention: "PyTorch 写法",
  conventions: { sdpa: "True = 保留", mha: "True = 遮住", additive: "相加" },
  noMaskCode: "attn_mask = None",

  inspector: "这个数是怎么来的",
  program: "用 PyTorch 得到同样的数",
  copy: "复制",
  copied: "已复制",

  status: ({ backend, kernel, threads, version }) => `${backend} · ${kernel} · ${threads} 线程 · attnscope ${version}`,
  lastPass: (ms) => `上次计算 ${ms} 毫秒`,
  starting: "正在启动引擎……",
  problem: ({ code, message, found }) => {
    if (code === "not_whole") return found.trim() === "" ? "请输入整数。" : `“${found}”不是整数。`;
    if (code === "no_tokens") return "请至少输入一个词。图中仍是上一个句子。";
    if (code === "not_divisible") return `d_model 不能被头数整除（${message}）`;
    return message;
  },

  inspect: {
    factors: (stage) => {
      const { over, left, right } = en.inspect.factors(stage);
      return stage === "context"
        ? { over: "键", left: "权重", right: "v" }
        : { over, left: left === "concat" ? "拼接" : left, right };
    },
    product: "乘积",
    bias: "偏置",
    sum: "和",
    key: "键",
    allowed: "可关注：不变",
    hidden: (fill) => `被遮住：变为 ${fill}`,
    given: "直接给定，未经计算",
    more: (count) => `……还有 ${count} 项`,
  },
};

export type Language = "en" | "zh";

export const TEXT: Record<Language, Text> = { en, zh };

export const LANGUAGES: readonly { value: Language; label: string }[] = [
  { value: "en", label: "English" },
  { value: "zh", label: "中文" },
];
