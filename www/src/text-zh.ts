import { en, type Text } from "./text.ts";

/** What the reader of files says most often; the rest are names of formats and parts of them. */
const FILE_WORDS: Record<string, string> = {
  "a number": "一个数",
  "at least one number": "至少一个数",
  "a number, as before": "与前面一样的数",
  "an array, as before": "与前面一样的数组",
  "a whole number of at least 0": "不小于 0 的整数",
  "a list": "列表",
  "an array or an object": "数组或对象",
  "text in quotes": "带引号的文本",
  "a matrix of two axes": "二维矩阵",
  "no bytes": "空文件",
  "a file": "文件",
  "no tensor": "没有张量",
  "at least one that holds numbers": "至少一个含数的张量",
  "the end": "文件结尾",
  nothing: "空",
};

export const zh: Text = {
  tagline: "注意力显微镜：输入句子，涂画掩码，看清每一个数。",
  taglineOfFile: "单个文件，无需网络。改动只留在此标签页；用“存为网页”可保存。",
  language: "语言",
  theme: "主题",
  themes: { system: "跟随系统", light: "浅色", dark: "深色" },

  notLoaded: "页面的这一部分未能加载。有网络时请再试。",

  lessons: "课程",
  lessonTitles: {
    head: "什么是头",
    several: "为什么要多个头",
    causal: "因果掩码",
    padding: "填充，以及谁还在泄漏",
    empty: "−1e9、−∞ 与全遮住的行",
    scale: "为什么除以 √d_k",
  },
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
  savePage: "存为网页",
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
  pageMissing: "无法取得网页，因此没有保存：第一次需要网络。一切都没有改变；可用“保存”单独存下状态。",
  notStored: "浏览器没有为本页保存任何内容：关闭标签页后就会丢失。可用“保存”存成文件。",

  sentence: "句子",
  queries: "查询",
  keysAndValues: "键与值",
  cross: "键来自另一行",
  askKey: (token) => `键 ${token}`,
  tokens: (query, head) => `第 ${head} 个头中“${query}”关注谁。点选词元可换一个查询。`,
  askToken: (token) => `查询 ${token}`,

  tokenMenu: "修改词元",
  tokenHint: "拖动可移动",
  moveLeft: "所选词元左移",
  moveRight: "右移",
  repeatToken: "重复一次",
  removeToken: "删除",
  repeatLine: "重复整行",
  notArranged: {
    empty: "最后一个词元不能删：一行至少有一个。",
    joined: "这些词元不能这样排：相邻时会被读成别的词元。",
    too_long: "这一行会超过 20,000 个字符。",
  },
  lineCut: (kept, count) =>
    kept > 1
      ? `一行最多 20,000 个字符：${count === null ? "" : `共 ${count} 个词元，`}只取了前 ${kept} 个。`
      : "一行最多 20,000 个字符：只取了开头的部分。",
  addToken: (token) => `添加 ${token}`,

  source: "数值来源",
  sources: { readable: "可读的头", torch: "PyTorch 种子", own: "自己的数" },
  draw: "X 取自",
  seed: "种子",
  nHeads: "头数",
  dModel: "d_model",
  scoreScale: "缩放系数",
  model: "模型",
  models: { attention: "注意力", blocks: "Transformer 块" },
  nLayers: "层数",
  activation: "非线性",
  norms: "归一化",
  normPlaces: { after: "在后", before: "在前" },

  ownNumbers: "自己的数",
  ownNumbersOf: (layer) => `第 ${layer} 层自己的数`,
  normWeight: "权重",
  matrix: "矩阵",
  origin: (matrix) => `${matrix} 的数值`,
  origins: {
    seed: "种子",
    one_hot: "独热",
    sinusoidal: "正弦位置",
    zeros: "全零",
    identity: "单位阵",
    one: "1 与 0",
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
    const said = `内容为 ${FILE_WORDS[String(found)] ?? found}，应为 ${FILE_WORDS[String(expected)] ?? expected}。`;
    if (code === "bad_file" && line !== undefined) return `${file}，第 ${line} 行第 ${column} 列：${said}`;
    if (code === "bad_file" && offset !== undefined) return `${file}，第 ${offset} 字节：${said}`;
    if (code === "bad_state_dict") return `${file}，${entry}：${said}`;
    if (code === "no_numbers") return `${file} 中没有数。`;
    if (code === "too_many_numbers") return `${file} 有 ${found} 个数，超过 ${expected}。`;
    if (code === "too_wide") return `${file}：大小 ${found} 超过 ${expected}。`;
    if (code === "no_matrix") return `${file}，${entry}：形状 [${found}] 不是矩阵。`;
    if (code === "wrong_rows") return `${file} 有 ${found} 行，而词元有 ${expected} 个。`;
    if (code === "no_stage") return `${file} 是一次计算，但没有“${expected}”这一阶段。`;
    if (code === "heads") return `${file}：${expected} 个头不能整除 ${found}。`;
    return `${file}：${message}`;
  },
  numbersAreKept: "原有的数没有改变。",
  notANumber: (row, column, typed, isTooLarge) =>
    `第 ${row} 行第 ${column} 列：“${typed}”${isTooLarge ? "超出 float32 的范围" : "不是数"}。`,
  numberStays: (number, others) =>
    others === 0 ? `仍使用 ${number}。` : `仍使用 ${number}。另有 ${others} 个单元格已标出。`,
  pasteTooLarge: (cells) => `粘贴的内容有 ${cells} 个单元格超出表格，未写入。`,

  layer: "层",
  layerNumber: (layer) => `第 ${layer} 层`,
  stages: "计算的各个阶段",
  stage: {
    input: "输入",
    memory: "记忆",
    key_input: "键输入",
    norm: "归一化",
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
    residual: "残差",
    cross_query: "交叉查询",
    cross_key: "交叉键",
    cross_value: "交叉值",
    cross_scores: "交叉分数",
    cross_scaled: "交叉缩放",
    cross_masked: "交叉掩码后",
    cross_weights: "交叉权重",
    cross_context: "交叉上下文",
    cross_concat: "交叉拼接",
    cross_output: "交叉输出",
    residual2: "残差 2",
    norm2: "归一化 2",
    hidden: "隐藏层",
    activation: "激活",
    feed_forward: "前馈",
    residual3: "残差 3",
    norm3: "归一化 3",
  },
  stageNote: {
    input: "每行一个词元：是哪个词，在哪个位置。",
    memory: "每个块的第二个注意力所看的内容，每行一个词元。",
    key_input: "键与值所来自的一行，每行一个词元。",
    norm: "每一行化为均值 0、方差 1。",
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
    residual: "注意力给出的，加上它所读的。",
    cross_query: "每个词元向另一行问什么。",
    cross_key: "另一行的词元以什么应答。",
    cross_value: "另一行的词元交出什么。",
    cross_scores: "每个查询与另一行每个键的契合程度。",
    cross_scaled: "这些分数除以 √d_k。",
    cross_masked: "这个注意力上没有掩码。",
    cross_weights: "每个查询如何把注意力分给另一行的键。",
    cross_context: "按权重混合的另一行的值。",
    cross_concat: "各个头的上下文并排放在一起。",
    cross_output: "第二个 W_O 把各个头合为一体。",
    residual2: "第二个分支给出的，加上它所读的。",
    norm2: "每一行化为均值 0、方差 1。",
    hidden: "前馈网络的中间层：每个词元各自乘以 W_1。",
    activation: "逐个数的非线性。",
    feed_forward: "前馈网络给出的：乘以 W_2。",
    residual3: "第三个分支给出的，加上它所读的。",
    norm3: "每一行化为均值 0、方差 1。",
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
  linesNote: "其他查询的较弱连线不画出。",
  notAnalysed: "权重太多，不再计算各头的作用和掩码的影响。",
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

  emptyRow: (head, query, gives) =>
    `“${query}”没有可关注的键：填 −1e9 时权重变为均匀，填 −∞ 时为 ${gives}（头 ${head}）。`,

  mask: "掩码",
  pin: "比较两个",
  unpin: (mask) => `只留 ${mask}`,
  inMask: (mask, told) => `掩码 ${mask}：${told}`,
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
  onlyAdded: "ALiBi 是每格一个数，这样的掩码只能相加。",
  noMaskCode: "attn_mask = None",

  inspector: "这个数是怎么来的",
  program: "用 PyTorch 得到同样的数",
  programTooLong: "内容太长，无法写成代码。",
  folded: (numbers) => `… ${numbers} 个数`,
  foldedNote: "长列表已折叠；复制得到的是全部内容。",
  copy: "复制",
  copied: "已复制",
  notCopied: "不允许复制",

  status: ({ backend, adapter, noGpu, kernel, threads, version }) =>
    [
      adapter ? `${backend} ${adapter}` : backend,
      ...(noGpu ? [`未用 GPU：${noGpu}`] : []),
      `${kernel} · ${threads} 线程 · attnscope ${version}`,
    ].join(" · "),
  lastPass: (ms) => `上次计算 ${ms} 毫秒`,
  documentation: "文档",
  starting: "正在启动引擎……",
  computing: (percent) => `正在计算 ${percent}%`,
  cancel: "取消",
  wasCancelled: "计算已取消。点“撤销”可以回到取消前的内容。",
  problem: ({ field, code, message, found, range, needed, count }) => {
    if (code === "too_few_columns") return `独热要求 d_model 至少为 ${found}：每个不同的词元一列。`;
    if (code === "out_of_range" && range) return `“${found}”不在 ${range[0]} 到 ${range[1]} 之间。`;
    if (code === "too_many_tokens") return `${found} 个词元超出了本页能显示的数量。图中是另一个句子。`;
    if (code === "not_a_number") return `“${found}”不是数。`;
    if (code === "not_whole") return found.trim() === "" ? "请输入整数。" : `“${found}”不是整数。`;
    if (code === "no_tokens") return "请至少输入一个词。在此之前，图中是另一个句子。";
    if (code === "not_divisible") return `d_model ${found} 不能被头数 ${count} 整除：请换个大小，或填写 d_k 与 d_v。`;
    if (code === "more_than_tokens") return `“${found}”多于现有的 ${count} 个词元。`;
    if (code === "no_such_token") return `没有编号为 ${found} 的词元：最后一个是 ${(count ?? 1) - 1}。`;
    if (code === "too_large" && needed !== undefined)
      return `这需要 ${(needed / 2 ** 30).toFixed(1)} GiB，超过本页可用的内存。图中显示的是较小的内容。`;
    if (code === "engine_crashed") return "引擎已停止，下一次修改时会重新启动。没有丢失任何内容。";
    if (code === "invalid_option") return `${field} 不能为“${found}”。`;
    return `引擎未能计算（${message}）`;
  },

  inspect: {
    factors: (stage) => {
      const { over, left, right } = en.inspect.factors(stage);
      const words: Record<string, string> = { key: "键", weight: "权重", concat: "拼接", activation: "激活" };
      return { over: words[over] ?? over, left: words[left] ?? left, right };
    },
    product: "乘积",
    bias: "偏置",
    sum: "和",
    key: "键",
    allowed: "可关注：不变",
    hidden: (fill) => `被遮住：变为 ${fill}`,
    emptyRow: "所有键都被遮住，全遮住的行得到 0",
    off: "头已关闭",
    given: "直接给定，未经计算",
    more: (count) => `……还有 ${count} 项`,
  },
};
