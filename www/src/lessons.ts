import type { Picture } from "./picture.ts";
import { cellsOf } from "./stages.ts";
import { type BenchState, type LessonName, type MaskState, NO_MASK, type RuleName, START } from "./state.ts";
import type { Language } from "./text.ts";

/** The bench at one moment: what was chosen and where one looks, and the picture made of it. */
interface Now {
  readonly state: BenchState;
  readonly picture: Picture;
}

interface Step {
  /** What the reader is asked to do. */
  readonly ask: Record<Language, string>;
  readonly isDone: (now: Now) => boolean;
  /** What is there to be seen then. */
  readonly seen: Record<Language, string | ((now: Now) => string)>;
}

/** The bench as it begins, and what to do with it. */
export interface Lesson {
  readonly start: Partial<BenchState>;
  readonly steps: readonly Step[];
}

const at = (place: Partial<BenchState["place"]>) => ({ ...START.place, ...place });

function maskOf({ masks, edited }: BenchState): MaskState {
  return masks[edited] ?? NO_MASK;
}

function isOnly({ terms }: MaskState, rule: RuleName): boolean {
  return terms.length === 1 && terms[0]?.rule === rule && !terms[0].isNegated;
}

/** The keys that a query has left in the selected head. */
function keysLeft({ state, picture: { tokens, keyTokens, after } }: Now, query: number): number {
  const cells = cellsOf(after.allowed, tokens.length * keyTokens.length, state.place.head);
  return cells.subarray(query * keyTokens.length, (query + 1) * keyTokens.length).filter((cell) => cell !== 0).length;
}

/** The selected query's row of a stage, in the selected head. */
function rowOf({ state, picture: { tokens, keyTokens, after } }: Now, stage: "scores" | "scaled"): number[] {
  const { head, query } = state.place;
  const start = (head * tokens.length + query) * keyTokens.length;
  return [...after.trace.stage(stage, { layer: state.place.layer }).data.subarray(start, start + keyTokens.length)];
}

function span(now: Now, stage: "scores" | "scaled"): readonly [string, string] {
  const row = rowOf(now, stage);
  return [Math.min(...row).toFixed(1), Math.max(...row).toFixed(1)].map((end) => end.replace("-", "−")) as [
    string,
    string,
  ];
}

/** The largest weight that a softmax makes of a row. */
function peak(row: readonly number[]): string {
  const most = Math.max(...row);
  return (1 / row.reduce((sum, score) => sum + Math.exp(score - most), 0)).toFixed(2);
}

const root = (of: number) => String(Math.round(100 * Math.sqrt(of)) / 100);

/** A causal mask over a line whose first token is padding: that token's own row is empty. */
const LEFT_PADDED = {
  rows: 4,
  columns: 4,
  cells: [Uint8Array.from({ length: 16 }, (_, i) => (i % 4 > 0 && i % 4 <= Math.floor(i / 4) ? 1 : 0))],
};

export const LESSON: Record<LessonName, Lesson> = {
  head: {
    start: { place: at({ query: 0, key: 0 }) },
    steps: [
      {
        ask: {
          en: "A row is a token that asks, a column one that answers. In head 1, choose the cell of query “sat” and key “cat”.",
          zh: "行是提问的词元，列是应答的词元。在头 1 中选中查询“sat”、键“cat”的单元格。",
        },
        isDone: ({ state: { place } }) => place.head === 0 && place.query === 2 && place.key === 1,
        seen: {
          en: "Its weight is near 1. Head 1 looks at the token before.",
          zh: "它的权重接近 1：头 1 看的是前一个词元。",
        },
      },
      {
        ask: { en: "Choose another cell of the same row.", zh: "在同一行中选另一个单元格。" },
        isDone: ({ state: { place } }) => place.head === 0 && place.query === 2 && place.key !== 1,
        seen: {
          en: "A query shares its attention among the keys: each row sums to 1.",
          zh: "一个查询把注意力分给各个键：每一行之和为 1。",
        },
      },
      {
        ask: { en: "In the strip of stages, open “scores”.", zh: "在阶段条中打开“分数”。" },
        isDone: ({ state: { place } }) => place.stage === "scores",
        seen: {
          en: "A score is the dot product of one query and one key. Softmax makes a row of weights of a row of scores.",
          zh: "分数是一个查询与一个键的点积。softmax 把一行分数变成一行权重。",
        },
      },
      {
        ask: { en: "Open “context”.", zh: "打开“上下文”。" },
        isDone: ({ state: { place } }) => place.stage === "context",
        seen: {
          en: "What a head hands on: for each query the keys’ values, mixed by its weights.",
          zh: "这就是头交出的东西：对每个查询，按权重混合各个键的值。",
        },
      },
    ],
  },

  several: {
    start: { place: at({ query: 4, key: 3 }) },
    steps: [
      {
        ask: {
          en: "In head 1 the second “the” looks at “on”, the token before. Choose a cell of the same row in head 3.",
          zh: "在头 1 中，第二个“the”看的是前一个词元“on”。在头 3 中选同一行的任一单元格。",
        },
        isDone: ({ state: { place } }) => place.head === 2 && place.query === 4,
        seen: {
          en: "Head 3 asks something else: where is the same word? A row has only 1 to give, so one head cannot answer both in full.",
          zh: "头 3 问的是另一件事：相同的词在哪里？一行总共只有 1 可分，一个头无法完整回答两个问题。",
        },
      },
      {
        ask: { en: "Under the heads, choose “average”.", zh: "在各个头下方选“平均”。" },
        isDone: ({ state: { heads } }) => heads.isAveraged,
        seen: {
          en: "Four questions in one matrix: no row says any of them plainly any more. Apart, each stays sharp.",
          zh: "四个问题合进一个矩阵：没有哪一行还能说清其中任何一个。分开时，每个都清楚。",
        },
      },
      {
        ask: {
          en: "Choose “average” again, and then switch off head 4 beside it.",
          zh: "再选一次“平均”取消它，然后在旁边关闭头 4。",
        },
        isDone: ({ state: { heads } }) => !heads.isAveraged && heads.off.includes(3),
        seen: {
          en: "The other heads are as they were: heads do not see each other.",
          zh: "其他的头没有变化：头与头互不相见。",
        },
      },
      {
        ask: { en: "Open “concat”.", zh: "打开“拼接”。" },
        isDone: ({ state: { place } }) => place.stage === "concat",
        seen: {
          en: "The heads’ contexts stand side by side; the last quarter, that of head 4, is 0. Only W_O mixes them.",
          zh: "各个头的上下文并排放着；最后四分之一属于头 4，全为 0。到 W_O 它们才混合。",
        },
      },
    ],
  },

  causal: {
    start: { place: at({ head: 2, query: 0, key: 0 }) },
    steps: [
      {
        ask: {
          en: "In head 3, choose the cell of the first query, “the”, and the fifth key, also “the”.",
          zh: "在头 3 中选中第一个查询“the”与第五个键（也是“the”）的单元格。",
        },
        isDone: ({ state: { place } }) => place.head === 2 && place.query === 0 && place.key === 4,
        seen: {
          en: "The first token looks at a later one. A model that writes from left to right does not have it yet.",
          zh: "第一个词元看到了后面的词元。而从左到右写作的模型此时还没有它。",
        },
      },
      {
        ask: { en: "Under Mask, choose “causal”.", zh: "在“掩码”下选“因果”。" },
        isDone: ({ state }) => isOnly(maskOf(state), "causal"),
        seen: {
          en: "Every key that comes after its query is hidden. The first row has one key left: its weight is 1.",
          zh: "每个查询之后的键都被遮住。第一行只剩一个键：权重为 1。",
        },
      },
      {
        ask: { en: "Open “masked”.", zh: "打开“掩码后”。" },
        isDone: ({ state: { place } }) => place.stage === "masked",
        seen: {
          en: "The mask acts on scores, before softmax. So what is left of a row still sums to 1.",
          zh: "掩码作用于分数，在 softmax 之前。因此每行剩下的部分之和仍为 1。",
        },
      },
      {
        ask: {
          en: "Open “weights” again, and show the difference.",
          zh: "再打开“权重”，并显示“差值”。",
        },
        isDone: ({ state: { place, comparing } }) => place.stage === "weights" && comparing === "difference",
        seen: {
          en: "What the hidden keys lost, others of the same row gained. A mask moves attention, it does not remove it.",
          zh: "被遮住的键失去多少，同一行的其他键就得到多少。掩码转移注意力，并不减少它。",
        },
      },
    ],
  },

  padding: {
    start: {
      sentence: "the cat sat pad pad",
      masks: [{ ...NO_MASK, numbers: { ...NO_MASK.numbers, padded: "2" } }],
      place: at({ head: 3, query: 1, key: 0 }),
    },
    steps: [
      {
        ask: {
          en: "Two tokens only fill the line up. Under Mask, choose “padding”.",
          zh: "末尾两个词元只是用来补齐。在“掩码”下选“填充”。",
        },
        isDone: ({ state }) => isOnly(maskOf(state), "padding"),
        seen: {
          en: "No query attends to them any more: their columns are hidden.",
          zh: "不再有查询关注它们：这两列被遮住了。",
        },
      },
      {
        ask: { en: "Now look at a row of “pad”: choose a cell of it.", zh: "再看“pad”所在的行：选其中一个单元格。" },
        isDone: ({ state: { place } }) => place.query >= 3,
        seen: {
          en: "A padding mask hides keys, not queries. Padding still asks, and attends to the words.",
          zh: "填充掩码遮住的是键，不是查询。填充仍在提问，并关注真正的词。",
        },
      },
      {
        ask: { en: "Open “output”.", zh: "打开“输出”。" },
        isDone: ({ state: { place } }) => place.stage === "output",
        seen: {
          en: "So padding has rows in the output as well. A mean or a loss over the rows has to leave them out.",
          zh: "因此填充在输出中也有自己的行。对各行求平均或损失时，必须把它们排除。",
        },
      },
      {
        ask: {
          en: "Open “weights” again, and paint a row of “pad” until all of it is hidden.",
          zh: "再打开“权重”，并涂画“pad”的一行，直到整行都被遮住。",
        },
        isDone: (now) => now.state.place.stage === "weights" && [3, 4].some((query) => keysLeft(now, query) === 0),
        seen: {
          en: "The row is even now, 0.2 for each key, the hidden ones too: with −1e9 all its scores are alike. Padding’s values leak in.",
          zh: "这一行变得均匀，每个键 0.2，被遮住的也一样：填 −1e9 后分数全都相同。填充的值由此漏入。",
        },
      },
    ],
  },

  empty: {
    start: {
      sentence: "pad the cat sat",
      masks: [{ ...NO_MASK, terms: [{ rule: "painted", join: "and", isNegated: false }], painted: LEFT_PADDED }],
      place: at({ query: 2, key: 2 }),
    },
    steps: [
      {
        ask: {
          en: "The mask is causal and hides padding, which stands first. Choose a cell of the row of “pad”.",
          zh: "这个掩码是因果的，并遮住排在最前的填充。选“pad”一行中的一个单元格。",
        },
        isDone: ({ state: { place } }) => place.query === 0,
        seen: {
          en: "It may attend to nothing, yet its weights are 0.25 each: every score is −1e9, and softmax sees only differences.",
          zh: "它没有可关注的键，权重却各为 0.25：每个分数都是 −1e9，而 softmax 只看差值。",
        },
      },
      {
        ask: { en: "Let hidden scores become −∞.", zh: "让被遮住的分数变为 −∞。" },
        isDone: ({ state }) => state.fill === "-inf",
        seen: {
          en: "The row is NaN: −∞ minus −∞, its maximum, is no number. Rows that have a key left are as before.",
          zh: "这一行成了 NaN：−∞ 减去最大值 −∞ 不是数。还有键的行与之前一样。",
        },
      },
      {
        ask: { en: "Open “output”.", zh: "打开“输出”。" },
        isDone: ({ state: { place } }) => place.stage === "output",
        seen: {
          en: "NaN passes on. In the next layer this token is a key, and 0 × NaN is NaN: every row would be lost.",
          zh: "NaN 会传下去。在下一层这个词元是键，而 0 × NaN 还是 NaN：所有行都会被毁掉。",
        },
      },
      {
        ask: { en: "Let an empty row give 0.", zh: "让全遮住的行得到 0。" },
        isDone: ({ state }) => state.fill === "-inf" && state.emptyRow === "zero",
        seen: {
          en: "Nothing attended to, nothing handed on. Only empty rows tell the three apart.",
          zh: "什么都不关注，也就什么都不交出。三种做法只在全遮住的行上有别。",
        },
      },
    ],
  },

  scale: {
    start: {
      numbers: { ...START.numbers, source: "torch", draw: "randn" },
      place: at({ query: 1, key: 0 }),
    },
    steps: [
      {
        ask: {
          en: "The numbers are random now, as before training. Open “scores”.",
          zh: "现在的数是随机的，如同训练之前。打开“分数”。",
        },
        isDone: ({ state: { place } }) => place.stage === "scores",
        seen: {
          en: "A score is a sum of d_k products, here 4. The legend says how far the scores reach.",
          zh: "一个分数是 d_k 个乘积之和，这里是 4 个。图例标出分数能到多远。",
        },
      },
      {
        ask: {
          en: "Set d_model to 256: with 4 heads, d_k becomes 64.",
          zh: "把 d_model 设为 256：4 个头时 d_k 成为 64。",
        },
        isDone: ({ picture: { sizes } }) => sizes.dK >= 64,
        seen: {
          en: (now) =>
            `The selected row runs from ${span(now, "scores").join(" to ")} now. Sums of 16 times as many products spread about √16 = 4 times as wide.`,
          zh: (now) =>
            `现在所选的行从 ${span(now, "scores").join(" 到 ")}。相加的乘积多到 16 倍，散布大约宽到 √16 = 4 倍。`,
        },
      },
      {
        ask: { en: "Open “scaled”.", zh: "打开“缩放”。" },
        isDone: ({ state: { place } }) => place.stage === "scaled",
        seen: {
          en: (now) =>
            `Divided by √d_k = ${root(now.picture.sizes.dK)}, the row runs from ${span(now, "scaled").join(" to ")}, whatever d_k is.`,
          zh: (now) =>
            `除以 √d_k = ${root(now.picture.sizes.dK)} 后，这一行从 ${span(now, "scaled").join(" 到 ")}，与 d_k 的大小无关。`,
        },
      },
      {
        ask: { en: "Open “weights”.", zh: "打开“权重”。" },
        isDone: ({ state: { place } }) => place.stage === "weights",
        seen: {
          en: (now) =>
            `The row’s largest weight is ${peak(rowOf(now, "scaled"))}. Without the division it would be ${peak(rowOf(now, "scores"))}: softmax would settle on one key by chance, where its gradient is near 0.`,
          zh: (now) =>
            `这一行最大的权重是 ${peak(rowOf(now, "scaled"))}。不除的话会是 ${peak(rowOf(now, "scores"))}：softmax 会偶然认定一个键，那里的梯度接近 0。`,
        },
      },
    ],
  },
};
