// A stage on a graphics processor as a view takes it: requests to the engine that has it.
import type { DeviceLook, DeviceMatrix, DeviceTensor, Survey } from "./device.ts";
import { AttnError } from "./errors.ts";
import type { Link } from "./link.ts";
import { shown } from "./shown.ts";
import type { Tensor } from "./tensor.ts";
import type { LeftStage } from "./trace.ts";

/** `entry` are indices of the first axes, `read` gives the whole stage's numbers. */
export function deviceTensor(
  link: Link,
  trace: number,
  { name: stage, layer, shape }: LeftStage,
  read: () => Promise<Tensor>,
  entry: readonly number[] = [],
): DeviceTensor {
  const own = shape.slice(entry.length);
  return {
    shape: own,
    at(index) {
      const expected = `one of ${own[0]} entries`;
      if (own.length < 3 || !(Number.isInteger(index) && index >= 0 && index < (own[0] as number)))
        throw new AttnError("shape_mismatch", `index: found ${shown(index)}, expected ${expected}`, {
          found: index,
          expected,
        });
      return deviceTensor(link, trace, { name: stage, layer, shape }, read, [...entry, index]);
    },
    async read() {
      const { data } = await read();
      const size = own.reduce((product, axis) => product * axis, 1);
      const first = entry.reduce((at, index, axis) => at * (shape[axis] as number) + index, 0);
      return { data: data.subarray(first * size, (first + 1) * size), shape: own };
    },
    async open(look: DeviceLook): Promise<DeviceMatrix | null> {
      const matrix = link.newId();
      const where = { id: trace, stage, layer, entry: [...entry], look, matrix };
      const survey = await link.call<Survey | null>({ op: "openMatrix", ...where });
      return (
        survey && {
          survey,
          draw: (picture) => link.call({ op: "drawMatrix", id: matrix, picture }),
          cells: (region) => link.call({ op: "readCells", id: matrix, region }),
          free: () => link.free(matrix),
        }
      );
    },
  };
}
