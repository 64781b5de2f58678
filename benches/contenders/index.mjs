// Each contender has a kind, a name and variants, and `start(variant, where)` gives an object with a method for every kind of work that it
// does. The method takes a problem of `work.mjs` and gives `{ run, free? }`, where `run` gives what `reference` gives. What cannot
// start or cannot do a problem throws, and stands in the report as not run. What has fewer threads than are asked for says how many.
import * as attnscope from "./attnscope.mjs";
import * as attnscopeWebgpu from "./attnscope-webgpu.mjs";
import * as gemm from "./gemm.mjs";
import * as javascript from "./javascript.mjs";
import * as jax from "./jax.mjs";
import * as ndarray from "./ndarray.mjs";
import * as onnxruntime from "./onnxruntime.mjs";
import * as onnxruntimeWebgpu from "./onnxruntime-webgpu.mjs";
import * as rten from "./rten-gemm.mjs";
import * as tfjs from "./tfjs.mjs";
import * as tfjsWebgpu from "./tfjs-webgpu.mjs";

/** How many threads a variant of a contender has. */
export const threadsOf = ({ threadsOf }, variant, threads) => threadsOf?.(variant, threads) ?? threads;

/** By what computes. */
export const contenders = {
  cpu: [attnscope, onnxruntime, tfjs, jax, rten, gemm, ndarray, javascript],
  webgpu: [attnscopeWebgpu, onnxruntimeWebgpu, tfjsWebgpu],
};
