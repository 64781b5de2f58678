import type { EngineInfo, HeadLabel, Stage } from "attnscope";
import type { InspectorText } from "attnscope/views";
import type { Origin } from "./matrices.ts";
import type { Unreadable } from "./reader.ts";
import type { Problem } from "./refusal.ts";
import type { BenchStage, Comparing, RuleName, RuleNumbers } from "./state.ts";
import type { FileProblem } from "./tensor-files.ts";

const CODE_NAMES: Partial<Record<Stage, string>> = { query: "Q", key: "K", value: "V", input: "X" };

/** What a mask took: from one query's row, and from all rows of its head. */
interface Freed {
  readonly head: number;
  readonly query: string;
  readonly row: string;
  readonly all: string;
  readonly rows: number;
}

interface Compared {
  readonly comparing: Record<Comparing, string>;
  readonly sideBySide: Record<Exclude<Comparing, "all">, string>;
  readonly freed: (freed: Freed) => string;
}

const en = {
  tagline: "An attention microscope: type a sentence, paint a mask, read every number.",
  language: "Language",
  theme: "Theme",
  themes: { system: "System", light: "Light", dark: "Dark" },

  lessons: "Lessons",
  lessonOf: (number: number, count: number) => `Lesson ${number} of ${count}`,
  stepDone: "done:",
  lessonDone: "The lesson is done.",
  nextLesson: "Next lesson",
  leaveLesson: "Leave",

  state: "State",
  undo: "Undo",
  redo: "Redo",
  copyLink: "Copy link",
  saveState: "Save",
  openState: "Open",
  dismiss: "Dismiss",
  unreadable: {
    damaged: () => "This cannot be read: it is damaged, or no state of this page.",
    too_large: () => "This cannot be opened: it is too large.",
    newer: () => "This was made by a newer version of the page.",
    wrong_value: (path) => `This cannot be opened: ${path} is out of range or of the wrong kind.`,
  } as Record<Unreadable["code"], (path: string) => string>,
  workIsKept: "Your own work is as it was.",
  linkTooLong: (kilobytes: string) =>
    `This state is too large for a link (${kilobytes} kB). Save gives it as a file, which Open reads.`,
  notStored: "The browser keeps nothing for this page: what is here is lost with the tab. Save gives it as a file.",

  sentence: "Sentence",
  queries: "Queries",
  keysAndValues: "Keys and values",
  cross: "keys from another line",
  askKey: (token: string) => `key ${token}`,
  tokens: (query: string, head: number) => `What “${query}” attends to in head ${head}. Choose a token to ask another.`,
  askToken: (token: string) => `query ${token}`,

  source: "Numbers from",
  sources: { readable: "Readable heads", torch: "PyTorch seed", own: "Own numbers" },
  draw: "X drawn by",
  seed: "Seed",
  nHeads: "Heads",
  dModel: "d_model",

  ownNumbers: "Own numbers",
  matrix: "Matrix",
  origin: (matrix: string) => `Numbers of ${matrix}`,
  origins: {
    seed: "seed",
    one_hot: "one-hot",
    sinusoidal: "sinusoidal",
    zeros: "zeros",
    identity: "identity",
    typed: "typed",
  } satisfies Record<Origin, string> as Record<Origin, string>,
  copyReadable: "Copy readable heads",
  headAndFeature: (head: number, feature: number) => `head ${head} · ${feature}`,
  numberGrid: (matrix: string, rows: number, columns: number) =>
    `${matrix}, ${rows} rows and ${columns} columns of numbers`,
  gridHint:
    "Type into a cell, paste a block from a spreadsheet, or drop a file: .npy, .npz, .csv, .safetensors, .pt. Enter opens a cell, Escape leaves it.",
  openNumbers: "Open a file",
  fileProblem: (file: string, { code, details, message }: FileProblem): string => {
    const { line, column, offset, entry, found, expected } = details;
    const said = `found ${found}, expected ${expected}.`;
    if (code === "bad_file" && line !== undefined) return `${file}, row ${line}, column ${column}: ${said}`;
    if (code === "bad_file" && offset !== undefined) return `${file}, byte ${offset}: ${said}`;
    if (code === "bad_state_dict") return `${file}, ${entry}: ${said}`;
    if (code === "no_numbers") return `${file} holds no numbers.`;
    if (code === "too_many_numbers") return `${file} holds ${found} numbers: more than ${expected}.`;
    if (code === "too_wide") return `${file}: a size of ${found} is more than ${expected}.`;
    if (code === "no_matrix") return `${file}, ${entry}: the shape [${found}] is not that of a matrix.`;
    if (code === "wrong_rows") return `${file} has ${found} rows, and there are ${expected} tokens.`;
    if (code === "heads") return `${file}: ${expected} heads do not divide ${found}.`;
    return `${file}: ${message}`;
  },
  numbersAreKept: "The numbers are as they were.",
  notANumber: (row: number, column: number, typed: string) =>
    `Row ${row}, column ${column}: “${typed}” is not a number.`,
  numberStays: (number: string, others: number) =>
    others === 0
      ? `${number} stays in use.`
      : `${number} stays in use. ${others} more ${others === 1 ? "cell is" : "cells are"} marked.`,
  pasteTooLarge: (cells: number) =>
    `${cells} pasted ${cells === 1 ? "cell lies" : "cells lie"} outside the grid and ${cells === 1 ? "was" : "were"} left out.`,

  stages: "Stages of the pass",
  stage: {
    input: "input",
    key_input: "key input",
    query: "query",
    key: "key",
    value: "value",
    scores: "scores",
    scaled: "scaled",
    masked: "masked",
    weights: "weights",
    context: "context",
    concat: "concat",
    output: "output",
  } satisfies Record<BenchStage, string> as Record<BenchStage, string>,
  stageNote: {
    input: "One row a token: which word it is, and where it stands.",
    key_input: "The line that keys and values come from, one row a token.",
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
  } satisfies Record<BenchStage, string> as Record<BenchStage, string>,
  axis: { query: "query", key: "key", feature: "feature" },
  head: (head: number) => `head ${head}`,
  gridLabel: (title: string, stage: string, row: string, column: string) =>
    `${title}, ${stage}: rows are ${row}, columns are ${column}`,
  cell: (title: string, row: string, column: string, value: string) => `${title}, ${row}, ${column}, ${value}`,
  axisValue: {
    query: (t: string) => `query ${t}`,
    key: (t: string) => `key ${t}`,
    feature: (t: string) => `feature ${t}`,
  },

  compare: "Show",
  /** What is compared: with and without a mask, or two masks. */
  single: {
    comparing: { with: "with mask", without: "without", difference: "difference", all: "side by side" },
    sideBySide: { without: "without mask", with: "with mask", difference: "difference" },
    freed: ({ head, query, row, all, rows }: Freed) =>
      `Head ${head}: the mask freed ${row} of the attention of query “${query}”, and ${all} of ${rows} over all rows.`,
  } as Compared,
  pair: {
    comparing: { with: "mask B", without: "mask A", difference: "B − A", all: "side by side" },
    sideBySide: { without: "mask A", with: "mask B", difference: "B − A" },
    freed: ({ head, query, row, all, rows }: Freed) =>
      `Head ${head}: from A to B, ${row} of the attention of query “${query}” went to other keys, and ${all} of ${rows} over all rows.`,
  } as Compared,
  look: "Look",
  looks: { matrix: "matrix", lines: "lines", bars: "bars" },
  linesLabel: (stage: string) => `${stage} as lines from queries to keys: rows are queries, columns are keys`,
  barsLabel: (stage: string) => `${stage} of the selected query as bars: rows are keys, columns are heads`,
  scale: "Colours",
  scales: { linear: "linear", log: "logarithmic", row: "row maximum" },
  range: "Range of the colours",
  ranges: { shared: "shared", each: "per head" },
  hidden: "hidden",
  rowMaximum: "row maximum",
  zoom: {
    zoomIn: "zoom in",
    zoomOut: "zoom out",
    whole: "the whole matrix",
    goTo: (axis: string) => `${axis} number, from 0`,
  },
  effect: "What the mask did",
  effectOfPair: "What changes from A to B",
  freedByHead: (rows: number) => `Freed, of ${rows} a head`,
  gains: "Cells that got the most",
  gain: (head: string, query: string, key: string) => `${head}, ${query} → ${key}`,
  noGains: "none",
  moved: "How far each output moved",
  token: "token",
  distance: "distance",
  cosine: "cosine",

  saveStage: (stage: string) => `Save ${stage} as`,
  savePass: "the whole pass as",
  savePicture: "the picture as",

  headsPlayed: "Heads that take part",
  headsOn: "Heads",
  headSwitch: (head: number) => `head ${head} takes part`,
  solo: (head: number) => `only ${head}`,
  average: "average",
  byEntropy: "by entropy",
  off: "off",
  entropy: (nats: string) => `entropy ${nats}`,
  meanOf: (heads: readonly number[]) => `mean of heads ${heads.join(", ")}`,
  label: {
    previous_token: "previous token",
    next_token: "next token",
    first_token: "first token",
    diagonal: "itself",
    same_token: "same token",
    uniform: "even",
    mixed: "mixed",
  } satisfies Record<HeadLabel["label"], string> as Record<HeadLabel["label"], string>,

  emptyRow: (head: number, query: string) =>
    `“${query}” may attend to nothing: with −1e9 its weights come out even, with −∞ they are NaN (head ${head}).`,

  mask: "Mask",
  pin: "compare two",
  unpin: (mask: string) => `keep only ${mask}`,
  editedMask: "The mask being edited",
  maskHint: "Click or drag to hide and show. Hatched is hidden.",
  noMask: "none",
  rules: {
    causal: "causal",
    padding: "padding",
    window: "window",
    prefix: "prefix",
    documents: "documents",
    global: "global",
    dilated: "dilated",
    painted: "painted",
  } satisfies Record<RuleName, string> as Record<RuleName, string>,
  ruleNumbers: {
    padded: "tokens at the end",
    before: "before",
    after: "after",
    prefix: "keys",
    starts: "begin at",
    globals: "positions",
    width: "width",
    stride: "stride",
  } satisfies Record<keyof RuleNumbers, string> as Record<keyof RuleNumbers, string>,
  joins: { and: "AND", or: "OR" },
  joinButton: (join: string) => `${join}: change how the rules join`,
  not: "NOT",
  notButton: (rule: string) => `NOT ${rule}`,
  removeRule: (rule: string) => `Remove ${rule}`,
  paintFor: "Paint",
  allHeads: "all heads",
  maskGrid: (heads: string) => `Mask for ${heads}: rows are queries, columns are keys; the space bar turns a cell over`,
  maskCell: (query: string, key: string, allowed: boolean) =>
    `query ${query}, key ${key}, ${allowed ? "may attend" : "hidden"}`,
  fill: "Hidden scores become",
  fills: { "-1e9": "−1e9", "-inf": "−∞" },
  emptyRowGives: "An empty row gives",
  emptyRows: { nan: "NaN", zero: "0" },
  convention: "In PyTorch",
  conventions: { sdpa: "True = keep", mha: "True = hide", additive: "added" },
  noMaskCode: "attn_mask = None",

  inspector: "How this number is made",
  program: "The same numbers in PyTorch",
  programTooLong: "There are too many numbers of one's own to write them all out.",
  copy: "Copy",
  copied: "Copied",

  status: ({ backend, kernel, threads, version }: EngineInfo) =>
    `${backend} · ${kernel} · ${threads} ${threads === 1 ? "thread" : "threads"} · attnscope ${version}`,
  lastPass: (ms: string) => `last pass ${ms} ms`,
  starting: "Starting the engine …",
  computing: (percent: number) => `computing ${percent} %`,
  cancel: "Cancel",
  wasCancelled: "The computation was cancelled. Undo brings back what it was for.",
  problem: ({ code, message, found, range }: Problem): string => {
    if (code === "too_few_columns")
      return `One-hot needs a d_model of at least ${found}: a column for each different token.`;
    if (code === "out_of_range" && range) return `“${found}” is not from ${range[0]} to ${range[1]}.`;
    if (code === "too_many_tokens")
      return `${found} tokens are more than the page can show. The picture is that of the last sentence.`;
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

  lessons: "课程",
  lessonOf: (number, count) => `第 ${number} 课，共 ${count} 课`,
  stepDone: "已完成：",
  lessonDone: "这一课已完成。",
  nextLesson: "下一课",
  leaveLesson: "离开",

  state: "状态",
  undo: "撤销",
  redo: "重做",
  copyLink: "复制链接",
  saveState: "保存",
  openState: "打开",
  dismiss: "知道了",
  unreadable: {
    damaged: () => "无法读取：内容已损坏，或不是本页的状态。",
    too_large: () => "无法打开：内容过大。",
    newer: () => "这是由更新版本的页面生成的。",
    wrong_value: (path) => `无法打开：${path} 超出范围或类型不对。`,
  },
  workIsKept: "您自己的内容没有改变。",
  linkTooLong: (kilobytes) => `这个状态太大，放不进链接（${kilobytes} kB）。可用“保存”存成文件，再用“打开”读取。`,
  notStored: "浏览器没有为本页保存任何内容：关闭标签页后就会丢失。可用“保存”存成文件。",

  sentence: "句子",
  queries: "查询",
  keysAndValues: "键与值",
  cross: "键来自另一行",
  askKey: (token) => `键 ${token}`,
  tokens: (query, head) => `第 ${head} 个头中“${query}”关注谁。点选词元可换一个查询。`,
  askToken: (token) => `查询 ${token}`,

  source: "数值来源",
  sources: { readable: "可读的头", torch: "PyTorch 种子", own: "自己的数" },
  draw: "X 取自",
  seed: "种子",
  nHeads: "头数",
  dModel: "d_model",

  ownNumbers: "自己的数",
  matrix: "矩阵",
  origin: (matrix) => `${matrix} 的数值`,
  origins: {
    seed: "种子",
    one_hot: "独热",
    sinusoidal: "正弦位置",
    zeros: "全零",
    identity: "单位阵",
    typed: "手填",
  },
  copyReadable: "复制可读的头",
  headAndFeature: (head, feature) => `头 ${head} · ${feature}`,
  numberGrid: (matrix, rows, columns) => `${matrix}，${rows} 行 ${columns} 列`,
  gridHint:
    "直接在单元格中输入，从电子表格粘贴一块，或拖入文件：.npy、.npz、.csv、.safetensors、.pt。回车打开单元格，Esc 离开。",
  openNumbers: "打开文件",
  fileProblem: (file, { code, details, message }) => {
    const { line, column, offset, entry, found, expected } = details;
    const said = `内容为 ${found}，应为 ${expected}。`;
    if (code === "bad_file" && line !== undefined) return `${file}，第 ${line} 行第 ${column} 列：${said}`;
    if (code === "bad_file" && offset !== undefined) return `${file}，第 ${offset} 字节：${said}`;
    if (code === "bad_state_dict") return `${file}，${entry}：${said}`;
    if (code === "no_numbers") return `${file} 中没有数。`;
    if (code === "too_many_numbers") return `${file} 有 ${found} 个数，超过 ${expected}。`;
    if (code === "too_wide") return `${file}：大小 ${found} 超过 ${expected}。`;
    if (code === "no_matrix") return `${file}，${entry}：形状 [${found}] 不是矩阵。`;
    if (code === "wrong_rows") return `${file} 有 ${found} 行，而词元有 ${expected} 个。`;
    if (code === "heads") return `${file}：${expected} 个头不能整除 ${found}。`;
    return `${file}：${message}`;
  },
  numbersAreKept: "原有的数没有改变。",
  notANumber: (row, column, typed) => `第 ${row} 行第 ${column} 列：“${typed}”不是数。`,
  numberStays: (number, others) =>
    others === 0 ? `仍使用 ${number}。` : `仍使用 ${number}。另有 ${others} 个单元格已标出。`,
  pasteTooLarge: (cells) => `粘贴的内容有 ${cells} 个单元格超出表格，未写入。`,

  stages: "计算的各个阶段",
  stage: {
    input: "输入",
    key_input: "键输入",
    query: "查询",
    key: "键",
    value: "值",
    scores: "分数",
    scaled: "缩放",
    masked: "掩码后",
    weights: "权重",
    context: "上下文",
    concat: "拼接",
    output: "输出",
  },
  stageNote: {
    input: "每行一个词元：是哪个词，在哪个位置。",
    key_input: "键与值所来自的一行，每行一个词元。",
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
  gridLabel: (title, stage, row, column) => `${title}，${stage}：行为${row}，列为${column}`,
  cell: (title, row, column, value) => `${title}，${row}，${column}，${value}`,
  axisValue: { query: (t) => `查询 ${t}`, key: (t) => `键 ${t}`, feature: (t) => `特征 ${t}` },

  compare: "显示",
  single: {
    comparing: { with: "有掩码", without: "无掩码", difference: "差值", all: "并排" },
    sideBySide: { without: "无掩码", with: "有掩码", difference: "差值" },
    freed: ({ head, query, row, all, rows }) =>
      `头 ${head}：掩码释放了查询“${query}”的 ${row} 注意力，所有行合计 ${rows} 中的 ${all}。`,
  },
  pair: {
    comparing: { with: "掩码 B", without: "掩码 A", difference: "B − A", all: "并排" },
    sideBySide: { without: "掩码 A", with: "掩码 B", difference: "B − A" },
    freed: ({ head, query, row, all, rows }) =>
      `头 ${head}：从 A 到 B，查询“${query}”有 ${row} 的注意力转到别的键，所有行合计 ${rows} 中的 ${all}。`,
  },
  look: "看法",
  looks: { matrix: "矩阵", lines: "连线", bars: "条形" },
  linesLabel: (stage) => `${stage}：从查询到键的连线；行为查询，列为键`,
  barsLabel: (stage) => `所选查询的${stage}：条形；行为键，列为头`,
  scale: "颜色",
  scales: { linear: "线性", log: "对数", row: "按行最大值" },
  range: "颜色的范围",
  ranges: { shared: "各头共用", each: "各头自用" },
  hidden: "遮住",
  rowMaximum: "行最大值",
  zoom: {
    zoomIn: "放大",
    zoomOut: "缩小",
    whole: "整个矩阵",
    goTo: (axis) => `${axis}编号，从 0 起`,
  },
  effect: "掩码做了什么",
  effectOfPair: "从 A 到 B 的变化",
  freedByHead: (rows) => `释放，每个头共 ${rows}`,
  gains: "得到最多的单元格",
  gain: (head, query, key) => `${head}，${query} → ${key}`,
  noGains: "无",
  moved: "各词元输出移动多远",
  token: "词元",
  distance: "距离",
  cosine: "余弦",

  saveStage: (stage) => `将${stage}存为`,
  savePass: "整个计算存为",
  savePicture: "图像存为",

  headsPlayed: "参与计算的头",
  headsOn: "头",
  headSwitch: (head) => `头 ${head} 参与计算`,
  solo: (head) => `只留 ${head}`,
  average: "平均",
  byEntropy: "按熵排序",
  off: "关闭",
  entropy: (nats) => `熵 ${nats}`,
  meanOf: (heads) => `头 ${heads.join("、")} 的平均`,
  label: {
    previous_token: "前一个词元",
    next_token: "后一个词元",
    first_token: "第一个词元",
    diagonal: "自身",
    same_token: "相同的词",
    uniform: "平均",
    mixed: "混合",
  },

  emptyRow: (head, query) => `“${query}”没有可关注的键：填 −1e9 时权重变为均匀，填 −∞ 时为 NaN（头 ${head}）。`,

  mask: "掩码",
  pin: "比较两个",
  unpin: (mask) => `只留 ${mask}`,
  editedMask: "正在编辑的掩码",
  maskHint: "点击或拖动来涂画；斜线为遮住。",
  noMask: "无",
  rules: {
    causal: "因果",
    padding: "填充",
    window: "滑动窗口",
    prefix: "前缀",
    documents: "文档",
    global: "全局",
    dilated: "空洞",
    painted: "手绘",
  },
  ruleNumbers: {
    padded: "末尾词元数",
    before: "之前",
    after: "之后",
    prefix: "键数",
    starts: "起始位置",
    globals: "位置",
    width: "宽度",
    stride: "步幅",
  },
  joins: { and: "与", or: "或" },
  joinButton: (join) => `${join}：切换规则的组合方式`,
  not: "非",
  notButton: (rule) => `非${rule}`,
  removeRule: (rule) => `去掉${rule}`,
  paintFor: "涂画",
  allHeads: "所有头",
  maskGrid: (heads) => `${heads}的掩码：行为查询，列为键；空格键切换单元格`,
  maskCell: (query, key, allowed) => `查询 ${query}，键 ${key}，${allowed ? "可关注" : "遮住"}`,
  fill: "被遮住的分数变为",
  fills: { "-1e9": "−1e9", "-inf": "−∞" },
  emptyRowGives: "全遮住的行得到",
  emptyRows: { nan: "NaN", zero: "0" },
  convention: "PyTorch 写法",
  conventions: { sdpa: "True = 保留", mha: "True = 遮住", additive: "相加" },
  noMaskCode: "attn_mask = None",

  inspector: "这个数是怎么来的",
  program: "用 PyTorch 得到同样的数",
  programTooLong: "自己的数太多，无法全部写出。",
  copy: "复制",
  copied: "已复制",

  status: ({ backend, kernel, threads, version }) => `${backend} · ${kernel} · ${threads} 线程 · attnscope ${version}`,
  lastPass: (ms) => `上次计算 ${ms} 毫秒`,
  starting: "正在启动引擎……",
  computing: (percent) => `正在计算 ${percent}%`,
  cancel: "取消",
  wasCancelled: "计算已取消。点“撤销”可以回到取消前的内容。",
  problem: ({ code, message, found, range }) => {
    if (code === "too_few_columns") return `独热要求 d_model 至少为 ${found}：每个不同的词元一列。`;
    if (code === "out_of_range" && range) return `“${found}”不在 ${range[0]} 到 ${range[1]} 之间。`;
    if (code === "too_many_tokens") return `${found} 个词元超出了本页能显示的数量。图中仍是上一个句子。`;
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
