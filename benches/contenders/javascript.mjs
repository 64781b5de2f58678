// Plain loops over Float32Array, as one would write them first; the order of the loops is the one that reads rows.
export const kind = "loop";
export const name = "JavaScript";
export const variants = ["loop"];

/** Beyond this a pass takes seconds. */
const MOST_OPERATIONS = 1e9;

export async function start(_variant, { threads }) {
  if (threads > 1) throw new Error("one thread");
  return {
    async matmul({ m, k, n, left, right }) {
      affordable(m * k * n);
      const out = new Float32Array(m * n);
      return {
        run() {
          multiply(left, right, m, k, n, out.fill(0));
          return [out];
        },
      };
    },
    async mha(problem) {
      const { n, d } = problem;
      affordable(4 * n * d * d + 2 * n * n * d);
      return { run: () => attend(problem) };
    },
  };
}

function affordable(multiplications) {
  if (2 * multiplications > MOST_OPERATIONS) throw new Error("takes seconds");
}

function multiply(left, right, m, k, n, out) {
  for (let i = 0; i < m; i++) {
    for (let c = 0; c < k; c++) {
      const factor = left[i * k + c];
      for (let j = 0; j < n; j++) out[i * n + j] += factor * right[c * n + j];
    }
  }
}

/** x · weightᵀ + bias */
function linear(x, weight, bias, n) {
  const inward = x.length / n;
  const outward = bias.length;
  const out = new Float32Array(n * outward);
  for (let i = 0; i < n; i++) {
    for (let o = 0; o < outward; o++) {
      let sum = bias[o];
      for (let c = 0; c < inward; c++) sum += x[i * inward + c] * weight[o * inward + c];
      out[i * outward + o] = sum;
    }
  }
  return out;
}

function attend({ n, d, h, causal, x, inWeight, inBias, outWeight, outBias }) {
  const width = d / h;
  const scale = 1 / Math.sqrt(width);
  const projected = linear(x, inWeight, inBias, n);
  const at = (part, i, head) => i * 3 * d + part * d + head * width;
  const weights = new Float32Array(h * n * n);
  const merged = new Float32Array(n * d);
  for (let head = 0; head < h; head++) {
    for (let i = 0; i < n; i++) {
      const allowed = causal ? i + 1 : n;
      const row = weights.subarray((head * n + i) * n, (head * n + i) * n + allowed);
      const query = at(0, i, head);
      let max = -Infinity;
      for (let j = 0; j < allowed; j++) {
        const key = at(1, j, head);
        let score = 0;
        for (let c = 0; c < width; c++) score += projected[query + c] * projected[key + c];
        row[j] = score * scale;
        max = Math.max(max, row[j]);
      }
      let sum = 0;
      for (let j = 0; j < allowed; j++) {
        row[j] = Math.exp(row[j] - max);
        sum += row[j];
      }
      for (let j = 0; j < allowed; j++) {
        row[j] /= sum;
        const value = at(2, j, head);
        for (let c = 0; c < width; c++) merged[i * d + head * width + c] += row[j] * projected[value + c];
      }
    }
  }
  return [linear(merged, outWeight, outBias, n), weights];
}
