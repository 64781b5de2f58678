// ONNX Runtime's WebAssembly backend, on three graphs of the same attention; weights are constants, so that it packs them before.
import { model } from "../onnx.mjs";
import { transposed } from "../work.mjs";

export const kind = "package";
export const name = "onnxruntime-web";

/** How query, key and value come to be `[heads, n, width]`, and what attends. */
const GRAPHS = { primitive, "fused QKV": fused, "Attention operator": attentionOperator };
export const variants = Object.keys(GRAPHS);

const HIDDEN = -1e9;
const SOFTMAXED = 3; // of Attention's last output: the weights rather than scores

export const start = async (variant, where) =>
  graphsOn(await import("onnxruntime-web"), { executionProviders: ["wasm"] }, variant, where);

/** The kinds of work, with the options of a session that say where. */
export function graphsOn(ort, backend, variant, { threads }) {
  ort.env.wasm.numThreads = threads;
  const options = { ...backend, graphOptimizationLevel: "all" };

  async function job(graph, x, names) {
    const session = await ort.InferenceSession.create(model(graph), options);
    const feeds = { x: new ort.Tensor("float32", x, graph.inputs.x) };
    return {
      async run() {
        const results = await session.run(feeds);
        return names.map((name) => results[name].data);
      },
      free: () => session.release(),
    };
  }

  return {
    // One product is one graph: the first variant stands for all.
    ...(variant === variants[0] && {
      matmul({ m, k, n, left, right }) {
        const nodes = [{ op: "MatMul", inputs: ["x", "right"], outputs: ["product"] }];
        const constants = { right: { data: right, shape: [k, n] } };
        return job({ nodes, constants, inputs: { x: [m, k] }, outputs: { product: [m, n] } }, left, ["product"]);
      },
    }),
    mha: (problem) => job(GRAPHS[variant](problem), problem.x, ["output", "weights"]),
  };
}

const node = (op, inputs, outputs, attributes) => ({ op, inputs, outputs: [outputs].flat(), attributes });
const ints = (...data) => ({ data, shape: [data.length] });
const causalBias = (n) => ({
  data: new Float32Array(n * n).map((_, at) => (at % n > Math.floor(at / n) ? HIDDEN : 0)),
  shape: [n, n],
});

/** Rows of the in-projection, as a constant to multiply by; the scale of the scores is in the query's. */
function projection({ d, h, inWeight, inBias }, from, to, isScaled) {
  const scale = Math.sqrt(h / d);
  const scaled = (numbers, width) =>
    numbers.map((number, at) => (isScaled && at < d * width ? number * scale : number));
  const weight = scaled(inWeight, d).subarray(from * d * d, to * d * d);
  const rows = (to - from) * d;
  return {
    weight: { data: transposed(weight, rows, d), shape: [d, rows] },
    bias: { data: scaled(inBias, 1).slice(from * d, to * d), shape: [rows] },
  };
}

/** A graph from x to output and weights; `merged` is what its out-projection takes, `[n, d]`. */
function graph({ n, d, h, outWeight, outBias }, nodes, constants, batch = []) {
  return {
    nodes: [
      ...nodes,
      node("MatMul", ["merged", "outWeight"], "unbiased"),
      node("Add", ["unbiased", "outBias"], "output"),
    ],
    constants: {
      ...constants,
      mergedShape: ints(n, d),
      outWeight: { data: transposed(outWeight, d, d), shape: [d, d] },
      outBias: { data: outBias, shape: [d] },
    },
    inputs: { x: [n, d] },
    outputs: { output: [n, d], weights: [...batch, h, n, n] },
  };
}

/** From query, key (already turned) and value of each head to `merged`. */
const attending = (causal) => [
  node("MatMul", ["query", "key"], "scores"),
  ...(causal ? [node("Add", ["scores", "hidden"], "masked")] : []),
  node("Softmax", [causal ? "masked" : "scores"], "weights", { axis: -1 }),
  node("MatMul", ["weights", "value"], "contexts"),
];

function primitive(problem) {
  const { n, d, h, causal } = problem;
  const parts = ["query", "key", "value"].map((part, at) => ({ part, ...projection(problem, at, at + 1, true) }));
  const nodes = [
    ...parts.flatMap(({ part }) => [
      node("MatMul", ["x", `${part}Weight`], `${part}Bare`),
      node("Add", [`${part}Bare`, `${part}Bias`], `${part}Flat`),
      node("Reshape", [`${part}Flat`, "headShape"], `${part}Heads`),
      node("Transpose", [`${part}Heads`], part, { perm: part === "key" ? [1, 2, 0] : [1, 0, 2] }),
    ]),
    ...attending(causal),
    node("Transpose", ["contexts"], "beside", { perm: [1, 0, 2] }),
    node("Reshape", ["beside", "mergedShape"], "merged"),
  ];
  const weights = parts.flatMap(({ part, weight, bias }) => [
    [`${part}Weight`, weight],
    [`${part}Bias`, bias],
  ]);
  const headShape = ints(n, h, d / h);
  return graph(problem, nodes, { ...Object.fromEntries(weights), headShape, ...(causal && { hidden: causalBias(n) }) });
}

function fused(problem) {
  const { n, d, h, causal } = problem;
  const { weight, bias } = projection(problem, 0, 3, true);
  const nodes = [
    node("MatMul", ["x", "weight"], "bare"),
    node("Add", ["bare", "bias"], "flat"),
    node("Reshape", ["flat", "headShape"], "heads"),
    node("Transpose", ["heads"], "parts", { perm: [1, 2, 0, 3] }),
    node("Split", ["parts"], ["query", "upright", "value"], { axis: 0, num_outputs: 3 }),
    node("Transpose", ["upright"], "key", { perm: [0, 1, 3, 2] }),
    ...attending(causal),
    node("Transpose", ["contexts"], "beside", { perm: [0, 2, 1, 3] }),
    node("Reshape", ["beside", "mergedShape"], "merged"),
  ];
  const constants = { weight, bias, headShape: ints(n, 3, h, d / h), ...(causal && { hidden: causalBias(n) }) };
  return graph(problem, nodes, constants, [1]);
}

function attentionOperator(problem) {
  const { n, d, h, causal } = problem;
  const { weight, bias } = projection(problem, 0, 3, false);
  const attributes = {
    q_num_heads: h,
    kv_num_heads: h,
    is_causal: Number(causal),
    qk_matmul_output_mode: SOFTMAXED,
  };
  const nodes = [
    node("MatMul", ["x", "weight"], "bare"),
    node("Add", ["bare", "bias"], "flat"),
    node("Reshape", ["flat", "batchShape"], "batch"),
    node("Split", ["batch"], ["query", "key", "value"], { axis: -1, num_outputs: 3 }),
    node("Attention", ["query", "key", "value"], ["attended", "", "", "weights"], attributes),
    node("Reshape", ["attended", "mergedShape"], "merged"),
  ];
  return graph(problem, nodes, { weight, bias, batchShape: ints(1, n, 3 * d) }, [1]);
}
