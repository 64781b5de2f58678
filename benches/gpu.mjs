// The graphics processor of a page: which it is, and the most that it computes in registers and copies through its memory.

/** Long enough that starting it counts nothing. */
const LEAST_MS = 50;
const RUNS = 5;

const open = () => navigator.gpu?.requestAdapter({ powerPreference: "high-performance" });

/** Its name, and whether it is a software renderer. */
export async function describe() {
  const found = await open();
  if (!found) throw new Error("WebGPU gives no adapter");
  const { vendor, architecture, description, isFallbackAdapter } = found.info;
  return { adapter: [vendor, architecture, description].filter(Boolean).join(" "), isSoftware: isFallbackAdapter };
}

/** Chains of multiply-and-add: few wait for each other's results, many do not fit into the registers. Which is best depends. */
const CHAINS = [2, 4, 8];
/** Fused as WGSL says it, or as a compiler may fuse it. */
const STEPS = [(chain) => `fma(${chain}, x, y)`, (chain) => `${chain} * x + y`];
const THREADS = 2 ** 18;
const STEPS_AT_LEAST = 16;

function computing(count, step) {
  const chains = Array.from({ length: count }, (_, chain) => `chain${chain}`);
  return `
    override STEPS: u32;
    @group(0) @binding(0) var<storage, read_write> numbers: array<vec4f>;
    @compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
      let x = numbers[id.x].xxyy;
      let y = numbers[id.x].zzww;
      ${chains.map((chain, index) => `var ${chain} = x * ${index + 1}.0;`).join("\n")}
      for (var i = 0u; i < STEPS; i++) {
        ${chains.map((chain) => `${chain} = ${step(chain)};`).join("\n")}
      }
      numbers[id.x] = ${chains.join(" + ")};
    }`;
}

/** The most that every device binds at once; more than caches hold. */
const COPIED = 2 ** 27;
const COPYING = `
  @group(0) @binding(0) var<storage, read> source: array<vec4f>;
  @group(0) @binding(1) var<storage, read_write> copy: array<vec4f>;
  @compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3u) {
    copy[id.x] = source[id.x];
  }`;

/** Milliseconds of some dispatches. */
async function taken(device, { code, constants }, buffers, workgroups, dispatches = 1) {
  const module = device.createShaderModule({ code });
  const pipeline = await device.createComputePipelineAsync({ layout: "auto", compute: { module, constants } });
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  const encoder = device.createCommandEncoder();
  const pass = encoder.beginComputePass();
  pass.setPipeline(pipeline);
  pass.setBindGroup(0, device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries }));
  for (let dispatch = 0; dispatch < dispatches; dispatch++) pass.dispatchWorkgroups(workgroups);
  pass.end();
  const start = performance.now();
  device.queue.submit([encoder.finish()]);
  await device.queue.onSubmittedWorkDone();
  return performance.now() - start;
}

/** Milliseconds of an amount of 1, of work that takes an amount: the best of some runs, for what disturbs them only slows them. */
async function fastest(work) {
  let amount = 1;
  while ((await work(amount)) < LEAST_MS) amount *= 2;
  const times = [];
  for (let run = 0; run < RUNS; run++) times.push(await work(amount));
  return Math.min(...times) / amount;
}

/** `{ gflops, gbps }`: what it computes, and what it reads and writes, in a second. */
export async function gpuPeak() {
  const device = await (await open()).requestDevice();
  const [STORAGE, COPY_DST] = [GPUBufferUsage.STORAGE, GPUBufferUsage.COPY_DST];
  const numbers = device.createBuffer({ size: 16 * THREADS, usage: STORAGE | COPY_DST });
  device.queue.writeBuffer(numbers, 0, new Float32Array(4 * THREADS).fill(0.5));
  let gflops = 0;
  for (const count of CHAINS) {
    for (const step of STEPS) {
      const code = computing(count, step);
      const ms = await fastest((amount) => {
        const constants = { STEPS: STEPS_AT_LEAST * amount };
        return taken(device, { code, constants }, [numbers], THREADS / 64);
      });
      gflops = Math.max(gflops, (8 * count * STEPS_AT_LEAST * THREADS) / ms / 1e6);
    }
  }
  const [source, copy] = [STORAGE, STORAGE].map((usage) => device.createBuffer({ size: COPIED, usage }));
  const copying = (dispatches) => taken(device, { code: COPYING }, [source, copy], COPIED / 16 / 256, dispatches);
  const gbps = (2 * COPIED) / (await fastest(copying)) / 1e6;
  device.destroy();
  return { gflops, gbps };
}
