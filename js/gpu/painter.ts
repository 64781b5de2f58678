// Draws matrices out of the buffers that they lie in: no number leaves the device but a row's largest.
import type { DeviceLook, DeviceMatrix, Region, Survey } from "../device.ts";
import { COPY_DST, COPY_SRC, copiedOut, STORAGE, UNIFORM } from "./buffers.ts";
import type { SHADERS } from "./shaders.ts";

/** A matrix in a buffer. */
export interface Lying {
  readonly buffer: GPUBuffer;
  readonly rows: number;
  readonly columns: number;
  /** Its first number. */
  readonly start: number;
  /** From a row to the next. */
  readonly rowStride: number;
  /** From a column to the next. */
  readonly columnStride: number;
}

const FORMAT = "rgba8unorm";
/** The most workgroups along an axis, on every device. */
const MOST_WORKGROUPS = 65_535;

export class Painter {
  readonly #device: GPUDevice;
  readonly #survey: Promise<GPUComputePipeline>;
  readonly #paint: Promise<GPURenderPipeline>;
  /** One for all pictures: each is taken out of it at once. */
  readonly #canvas = new OffscreenCanvas(1, 1);

  constructor(device: GPUDevice, compile: (files: readonly (keyof typeof SHADERS)[]) => Promise<GPUShaderModule>) {
    this.#device = device;
    this.#survey = compile(["matrix", "survey"]).then((module) =>
      device.createComputePipelineAsync({ layout: "auto", compute: { module } }),
    );
    this.#paint = compile(["matrix", "picture"]).then((module) =>
      device.createRenderPipelineAsync({
        layout: "auto",
        vertex: { module },
        fragment: { module, targets: [{ format: FORMAT }] },
      }),
    );
  }

  /** Makes a matrix ready to be drawn. */
  async open(lying: Lying, { hidden, byRow, transposed }: DeviceLook): Promise<DeviceMatrix> {
    const device = this.#device;
    const [rows, columns] = transposed ? [lying.columns, lying.rows] : [lying.rows, lying.columns];
    const turn = ([one, other]: [number, number]): [number, number] => (transposed ? [other, one] : [one, other]);
    const words = [rows, columns, lying.start, ...turn([lying.rowStride, lying.columnStride])];
    const own: GPUBuffer[] = [];
    const make = (bytes: number, usage: number, data?: Uint8Array | Uint32Array | Float32Array) => {
      const buffer = device.createBuffer({ size: 4 * Math.ceil(bytes / 4), usage: usage | COPY_DST });
      if (data) write(device, buffer, data);
      own.push(buffer);
      return buffer;
    };
    const sizes = make(32, UNIFORM, Uint32Array.from([...words, hidden ? 1 : 0, ...turn([lying.columns, 1])]));
    const seen = [sizes, lying.buffer, hidden ? make(hidden.length, STORAGE, hidden) : lying.buffer];
    const found = await this.#surveyed(seen, rows);
    const survey = summary(found, byRow);
    const factors = survey.factors ? make(4 * rows, STORAGE, survey.factors) : lying.buffer;
    const region = make(16, UNIFORM);
    const look = make(4 * (255 + 259), STORAGE);
    const paint = await this.#paint;
    return {
      survey,
      draw: async ({ block, region: { top, left, bottom, right }, thresholds, colors }) => {
        write(device, region, Uint32Array.of(top, left, block, byRow ? 1 : 0));
        write(device, look, Uint32Array.of(...thresholds, ...colors));
        return this.#painted(paint, [...seen, region, factors, look], right - left, bottom - top);
      },
      cells: (region) => this.#cells(lying, region),
      free: () => {
        for (const buffer of own) buffer.destroy();
      },
    };
  }

  /** Of each row the bits of its largest finite magnitude, and of what is not finite. */
  async #surveyed(seen: readonly GPUBuffer[], rows: number): Promise<Uint32Array<ArrayBuffer>> {
    const device = this.#device;
    const pipeline = await this.#survey;
    const found = device.createBuffer({ size: 8 * rows, usage: STORAGE | COPY_SRC });
    const across = Math.min(rows, MOST_WORKGROUPS);
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bound(device, pipeline, [...seen, found]));
    pass.dispatchWorkgroups(across, Math.ceil(rows / across));
    pass.end();
    const copied = await copiedOut(device, encoder, [{ buffer: found, from: 0, bytes: 8 * rows }]);
    found.destroy();
    return new Uint32Array(copied);
  }

  #painted(pipeline: GPURenderPipeline, seen: readonly GPUBuffer[], width: number, height: number): ImageBitmap {
    const [device, canvas] = [this.#device, this.#canvas];
    [canvas.width, canvas.height] = [width, height];
    const context = canvas.getContext("webgpu") as GPUCanvasContext;
    context.configure({ device, format: FORMAT, alphaMode: "premultiplied" });
    const view = context.getCurrentTexture().createView();
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: "clear", storeOp: "store" }] });
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, bound(device, pipeline, seen));
    pass.draw(3);
    pass.end();
    device.queue.submit([encoder.finish()]);
    return canvas.transferToImageBitmap();
  }

  async #cells(lying: Lying, { top, left, bottom, right }: Region): Promise<Float32Array> {
    const { buffer, start, rowStride, columnStride } = lying;
    // Rows whose numbers lie apart are copied with what lies between.
    const length = (right - left - 1) * columnStride + 1;
    const rows = Array.from({ length: bottom - top }, (_, i) => {
      return { buffer, from: 4 * (start + (top + i) * rowStride + left * columnStride), bytes: 4 * length };
    });
    const copied = new Float32Array(await copiedOut(this.#device, this.#device.createCommandEncoder(), rows));
    return columnStride === 1 ? copied : copied.filter((_, i) => (i % length) % columnStride === 0);
  }
}

function write(device: GPUDevice, buffer: GPUBuffer, data: Uint8Array | Uint32Array | Float32Array): void {
  const whole = data.byteLength % 4 === 0 ? data : padded(data);
  device.queue.writeBuffer(buffer, 0, whole as Uint8Array<ArrayBuffer>);
}

/** Bytes to a multiple of four, as writes need them. */
function padded(data: Uint8Array | Uint32Array | Float32Array): Uint8Array {
  const whole = new Uint8Array(4 * Math.ceil(data.byteLength / 4));
  whole.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return whole;
}

/** The buffers as a shader sees them, from binding 0 on. */
function bound(
  device: GPUDevice,
  pipeline: GPUComputePipeline | GPURenderPipeline,
  buffers: readonly GPUBuffer[],
): GPUBindGroup {
  const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
  return device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
}

function summary(found: Uint32Array<ArrayBuffer>, byRow: boolean): Survey {
  const largest = new Float32Array(found.buffer).filter((_, i) => i % 2 === 0);
  const outside = found.reduce((all, bits, i) => (i % 2 === 1 ? all | bits : all), 0);
  return {
    reach: largest.reduce((reach, size) => Math.max(reach, size), 0),
    outside: { nan: (outside & 1) > 0, plus: (outside & 2) > 0, minus: (outside & 4) > 0 },
    factors: byRow ? largest.map((size) => (size > 0 ? 1 / size : 1)) : null,
  };
}
