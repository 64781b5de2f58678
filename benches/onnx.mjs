// ONNX models from a few lines: protocol buffers by hand, as far as the graphs of the benchmark need them.
// The numbers of the fields are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto.

const FLOAT = 1;
const INT64 = 7;
const IR_VERSION = 10;
const OPSET = 23;

const varint = (value) => {
  const bytes = [];
  for (let rest = BigInt.asUintN(64, BigInt(value)); ; rest >>= 7n) {
    if (rest < 128n) return [...bytes, Number(rest)];
    bytes.push(Number(rest & 127n) | 128);
  }
};

/** A field that holds a number. */
const whole = (field, value) => Uint8Array.from([...varint(field << 3), ...varint(value)]);

/** A field that holds bytes, text or a message: what its fields give, one after the other. */
function block(field, ...content) {
  const parts = content.flat().map((part) => (typeof part === "string" ? new TextEncoder().encode(part) : part));
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return joined([Uint8Array.from([...varint((field << 3) | 2), ...varint(length)]), ...parts]);
}

function joined(parts) {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  parts.reduce((at, part) => {
    out.set(part, at);
    return at + part.length;
  }, 0);
  return out;
}

/** A constant: a Float32Array with its shape, or whole numbers in a list. */
function constant(name, { data, shape }) {
  const isFloat = data instanceof Float32Array;
  const numbers = isFloat ? data : BigInt64Array.from(data, BigInt);
  const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  const dims = shape.map((dim) => whole(1, dim));
  return block(5, ...dims, whole(2, isFloat ? FLOAT : INT64), block(8, name), block(9, bytes));
}

/** An attribute of a node: a whole number or a list of them. */
const attribute = ([name, value]) =>
  Array.isArray(value)
    ? block(5, block(1, name), ...value.map((one) => whole(8, one)), whole(20, 7))
    : block(5, block(1, name), whole(3, value), whole(20, 2));

function node({ op, inputs, outputs, attributes = {} }) {
  const names = [...inputs.map((name) => block(1, name)), ...outputs.map((name) => block(2, name))];
  return block(1, ...names, block(4, op), ...Object.entries(attributes).map(attribute));
}

/** The type of an input or output. */
function typed(field, [name, shape]) {
  const dims = shape.map((dim) => block(1, whole(1, dim)));
  return block(field, block(1, name), block(2, block(1, whole(1, FLOAT), block(2, ...dims))));
}

/** The bytes of a model; `nodes` are `{ op, inputs, outputs, attributes }`, the rest is by name. */
export function model({ nodes, constants, inputs, outputs }) {
  const graph = block(
    7,
    ...nodes.map(node),
    block(2, "graph"),
    ...Object.entries(constants).map(([name, value]) => constant(name, value)),
    ...Object.entries(inputs).map((entry) => typed(11, entry)),
    ...Object.entries(outputs).map((entry) => typed(12, entry)),
  );
  return joined([whole(1, IR_VERSION), graph, block(8, block(1, ""), whole(2, OPSET))]);
}
