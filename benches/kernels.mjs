// How long each kernel of our passes takes on a graphics processor. The page's own WebGPU objects are wrapped, so that each dispatch is a
// pass of its own between two timestamps; the package knows nothing of it.
import { start } from "./contenders/attnscope-webgpu.mjs";
import { warmUp } from "./rounds.mjs";
import { withNumbers } from "./work.mjs";

/** Of each shader the numbers of its sizes: what it does in words, and the operations, where they are multiply-adds. */
const SHADERS = {
  matmul: ({ sizes: [m, n, k], workgroups: [, , matrices] }) => ({
    shape: `${matrices} of ${m}x${k}x${n}`,
    operations: 2 * m * k * n * matrices,
  }),
  attention: ({ sizes, workgroups: [, heads], constants: { D_V: value } }) => {
    const [queries, keys, width] = sizes.subarray(8);
    return {
      shape: `${heads} heads, ${queries} queries, ${keys} keys, ${width} wide`,
      operations: 2 * queries * keys * (width + value) * heads,
    };
  },
  softmax: ({ sizes: [, , , , , , , , rows, , , keys] }) => ({ shape: `${rows} rows of ${keys}` }),
};

/** Replaces a method by one that gets the old one, then the arguments. */
function wrap({ prototype }, method, around) {
  const old = prototype[method];
  prototype[method] = function (...given) {
    return around.call(this, (...own) => old.apply(this, own), ...given);
  };
}

/** Wraps WebGPU; gives a function that gives the dispatches since it was last called, each with its milliseconds. */
function watch() {
  const [compiled, bound, written, encoded] = [new WeakMap(), new WeakMap(), new WeakMap(), new WeakMap()];
  let finished = [];

  wrap(GPUAdapter, "requestDevice", (request, descriptor) =>
    request({ ...descriptor, requiredFeatures: [...(descriptor?.requiredFeatures ?? []), "timestamp-query"] }),
  );
  wrap(GPUDevice, "createComputePipelineAsync", async (create, descriptor) => {
    const pipeline = await create(descriptor);
    compiled.set(pipeline, descriptor.compute);
    return pipeline;
  });
  wrap(GPUDevice, "createBindGroup", (create, descriptor) => {
    const group = create(descriptor);
    bound.set(group, descriptor.entries);
    return group;
  });
  wrap(GPUQueue, "writeBuffer", (write, buffer, at, words) => {
    write(buffer, at, words);
    // Sizes are the last that is written of their buffer.
    written.set(buffer, { at, words });
  });
  wrap(GPUDevice, "createCommandEncoder", function (create) {
    const encoder = create();
    const querySet = this.createQuerySet({ type: "timestamp", count: 256 });
    encoded.set(encoder, { device: this, querySet, dispatches: [] });
    return encoder;
  });

  function described(pipeline, group, workgroups) {
    const { module, constants } = compiled.get(pipeline);
    const [{ resource }, ...others] = bound.get(group);
    const { at, words } = written.get(resource.buffer);
    const sizes = words.slice((resource.offset - at) / 4, (resource.offset - at + resource.size) / 4);
    const bytes = others.reduce((sum, { resource }) => sum + resource.size, 0);
    return { shader: module.label, bytes, ...SHADERS[module.label]({ sizes, workgroups, constants }) };
  }
  wrap(GPUCommandEncoder, "beginComputePass", function (begin) {
    const { querySet, dispatches } = encoded.get(this);
    let pipeline;
    let group;
    return {
      setPipeline: (next) => {
        pipeline = next;
      },
      setBindGroup: (index, next) => {
        group = [index, next];
      },
      dispatchWorkgroups(...workgroups) {
        const [beginningOfPassWriteIndex, endOfPassWriteIndex] = [2 * dispatches.length, 2 * dispatches.length + 1];
        const pass = begin({ timestampWrites: { querySet, beginningOfPassWriteIndex, endOfPassWriteIndex } });
        pass.setPipeline(pipeline);
        pass.setBindGroup(...group);
        pass.dispatchWorkgroups(...workgroups);
        pass.end();
        dispatches.push(described(pipeline, group[1], workgroups));
      },
      end() {},
    };
  });
  wrap(GPUCommandEncoder, "finish", function (finish) {
    const { device, querySet, dispatches } = encoded.get(this);
    const { QUERY_RESOLVE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
    const size = 16 * dispatches.length;
    const resolved = device.createBuffer({ size, usage: QUERY_RESOLVE | COPY_SRC });
    const staging = device.createBuffer({ size, usage: COPY_DST | MAP_READ });
    this.resolveQuerySet(querySet, 0, 2 * dispatches.length, resolved, 0);
    this.copyBufferToBuffer(resolved, 0, staging, 0, size);
    finished.push({ dispatches, staging, free: [querySet, resolved, staging] });
    return finish();
  });

  return async () => {
    const all = [];
    for (const { dispatches, staging, free } of finished) {
      await staging.mapAsync(GPUMapMode.READ);
      const stamps = new BigUint64Array(staging.getMappedRange());
      for (const [i, dispatch] of dispatches.entries()) {
        all.push({ ...dispatch, milliseconds: Number(stamps[2 * i + 1] - stamps[2 * i]) / 1e6 });
      }
      for (const one of free) one.destroy();
    }
    finished = [];
    return all;
  };
}

const sum = (numbers) => numbers.reduce((left, right) => left + right, 0);

/** `{ spec, whole, kernels }` of each case: samples of the pass, and of all dispatches together of each kernel and shape. */
export async function kernels(cases, rounds) {
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter.features.has("timestamp-query")) throw new Error("the adapter has no timestamps");
  const dispatched = watch();
  const works = await start();
  const found = [];
  for (const spec of cases) {
    const job = await works[spec.work](withNumbers(spec));
    await warmUp(job);
    await dispatched();
    const [whole, dispatches] = [[], []];
    for (let round = 0; round < rounds; round++) {
      const begin = performance.now();
      await job.run();
      whole.push(performance.now() - begin);
      dispatches.push(await dispatched());
    }
    const nameOf = ({ shader, shape }) => `${shader} ${shape}`;
    const kernels = [...Map.groupBy(dispatches[0], nameOf)].map(([name, group]) => ({
      ...group[0],
      dispatches: group.length,
      operations: sum(group.map(({ operations = 0 }) => operations)),
      bytes: sum(group.map(({ bytes }) => bytes)),
      samples: dispatches.map((round) =>
        sum(round.filter((one) => nameOf(one) === name).map(({ milliseconds }) => milliseconds)),
      ),
    }));
    found.push({ spec, whole, kernels });
    console.log(`kernels of ${spec.work} ${spec.size}: ${rounds} rounds`);
  }
  return found;
}
