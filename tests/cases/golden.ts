// Reads the golden files and compares, in Node and in browsers alike.
import type * as Attnscope from "attnscope";

export type Tensor = Attnscope.Tensor;

/** Numbers of any type, as float64. */
export interface Numbers {
  data: Float64Array;
  shape: number[];
  isFloat: boolean;
}

export type Numbered = Map<string, Numbers>;

/** One case of a manifest. */
export interface CaseJson {
  id: string;
  group: string;
  config: Record<string, unknown>;
  inputs: Record<string, string>;
  params: Record<string, string>;
  expected: Record<string, string>;
  expected64: Record<string, string>;
  err: Record<string, number>;
  raises?: string;
}

/** What a case computes, by the names that its expectation has. */
export type Computed = Record<string, Tensor | null | undefined>;

/** How many cases of each group passed, and what is wrong with the others. */
export interface Report {
  passed: Record<string, number>;
  failed: string[];
}

/** The package under test and an engine of it. */
export interface Subject {
  attnscope: typeof Attnscope;
  engine: Attnscope.Engine;
}

/** A safetensors file's tensors. */
export function readSafetensors(bytes: ArrayBuffer): Numbered {
  const view = new DataView(bytes);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, start - 8))) as Record<
    string,
    { dtype: string; shape: number[]; data_offsets: [number, number] }
  >;
  const tensors: Numbered = new Map();
  for (const [name, entry] of Object.entries(header)) {
    const [from, to] = entry.data_offsets ?? [0, 0];
    const part = bytes.slice(start + from, start + to);
    const read = {
      F32: () => new Float32Array(part),
      F64: () => new Float64Array(part),
      I64: () => Array.from(new BigInt64Array(part), Number),
      U8: () => new Uint8Array(part),
    }[entry.dtype];
    // Half precision is not this engine's; no case that is run has it.
    if (read) {
      tensors.set(name, { data: Float64Array.from(read()), shape: entry.shape, isFloat: entry.dtype[0] === "F" });
    }
  }
  return tensors;
}

export function numbersOf(tensors: Numbered, key: string | undefined): Numbers {
  const found = key === undefined ? undefined : tensors.get(key);
  if (!found) throw new Error(`no tensor ${key}`);
  return found;
}

export function tensorOf(tensors: Numbered, key: string | undefined): Tensor {
  const { data, shape } = numbersOf(tensors, key);
  return { data: Float32Array.from(data), shape };
}

/** A case with its tensors. */
export class Case {
  readonly json: CaseJson;
  readonly tensors: Numbered;

  constructor(json: CaseJson, tensors: Numbered) {
    this.json = json;
    this.tensors = tensors;
  }

  size(name: string): number {
    const size = this.json.config[name];
    if (typeof size !== "number") throw new Error(`${this.json.id}: no ${name}`);
    return size;
  }

  has(name: string): boolean {
    return this.json.inputs[name] !== undefined;
  }

  input(name: string): Tensor {
    return tensorOf(this.tensors, this.json.inputs[name]);
  }

  /**
   * A mask's matrix: of booleans or whole numbers what `ofBool` makes of them, of floats what is added. `shaped` gives it
   * another shape first.
   */
  mask(
    { mask }: typeof Attnscope,
    name: string,
    ofBool: "fromKeep" | "fromMasked",
    options?: { axes?: "batch" },
    shaped = (shape: number[]) => shape,
  ): Attnscope.Mask | null {
    if (!this.has(name)) return null;
    const { data, shape, isFloat } = numbersOf(this.tensors, this.json.inputs[name]);
    const matrix = { data: Float32Array.from(data), shape: shaped(shape) };
    return isFloat ? mask.additive(matrix, options) : mask[ofBool](matrix, options);
  }

  stateDict(): Record<string, Tensor> {
    const entries = Object.entries(this.json.params);
    return Object.fromEntries(entries.map(([name, key]) => [name, tensorOf(this.tensors, key)]));
  }
}

export function both(left: Attnscope.Mask | null, right: Attnscope.Mask | null): Attnscope.Mask | null {
  return left && right ? left.and(right) : (left ?? right);
}

/** Runs every case of the groups that PyTorch computes. */
export async function runGroups(
  cases: readonly CaseJson[],
  tensors: Numbered,
  groups: Record<string, (golden: Case) => Promise<Computed>>,
): Promise<Report> {
  const report: Report = { passed: {}, failed: [] };
  for (const json of cases) {
    const run = groups[json.group];
    if (!run || json.raises) continue;
    const problem = await run(new Case(json, tensors)).then(
      (ours) => firstDifference(json, ours, tensors),
      (reason) => String(reason),
    );
    tally(report, json.group, problem && `${json.id}: ${problem}`);
  }
  return report;
}

export function tally(report: Report, group: string, problem: string | null): void {
  if (problem) report.failed.push(problem);
  else report.passed[group] = (report.passed[group] ?? 0) + 1;
}

function firstDifference(json: CaseJson, ours: Computed, tensors: Numbered): string | null {
  for (const [name, key] of Object.entries(json.expected64)) {
    const float32 = numbersOf(tensors, json.expected[name]);
    const bound = Math.max(8 * (json.err[name] ?? 0), 2e-6);
    const problem = difference(name, ours[name], numbersOf(tensors, key), float32.data, bound);
    if (problem) return problem;
  }
  return null;
}

/** The first number outside |ours - expected| <= bound (1 + |expected|); what is not finite in float32 must be the same. */
export function difference(
  name: string,
  ours: Tensor | null | undefined,
  expected: Numbers,
  float32: Float64Array,
  bound: number,
): string | null {
  if (!ours) return `no ${name}`;
  if (String(ours.shape) !== String(expected.shape)) return `${name} of shape ${ours.shape} for ${expected.shape}`;
  for (const [i, value] of expected.data.entries()) {
    const found = ours.data[i] as number;
    const inFloat32 = float32[i] as number;
    const error = Math.abs(found - value);
    const fits = Number.isFinite(inFloat32) ? error <= bound * (1 + Math.abs(value)) : Object.is(found, inFloat32);
    if (!fits) return `${name}[${i}] is ${found} for ${value} (${inFloat32}), bound ${bound}`;
  }
  return null;
}
