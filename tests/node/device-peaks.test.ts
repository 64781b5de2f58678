// A matrix on a graphics processor whose pass is disposed while it is shown.
import { expect, test, vi } from "vitest";
import type { DeviceMatrix, DeviceTensor } from "../../js/device.ts";
import { DevicePeaks } from "../../js/views/device-peaks.ts";

const disposed = new Error("disposed");
const survey = { reach: 1, outside: { nan: false, plus: false, minus: false }, factors: null };
const options = { hidden: null, hiddenKeepsColor: false, byRow: false, transposed: false };

function tensor(open: DeviceTensor["open"]): DeviceTensor {
  return { shape: [4, 4], at: () => tensor(open), read: () => Promise.reject(disposed), open };
}

const settled = () => new Promise((resolve) => setTimeout(resolve));

test.each<[string, DeviceTensor["open"]]>([
  ["before it is opened", () => Promise.reject(disposed)],
  ["while its numbers are read, since the processor is gone", () => Promise.resolve(null)],
  [
    "before a cell is fetched",
    () => Promise.resolve({ survey, cells: () => Promise.reject(disposed), free() {} } as unknown as DeviceMatrix),
  ],
])("%s the console says so, once", async (_, open) => {
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  const peaks = new DevicePeaks(tensor(open), options, () => {});
  await settled();
  for (let row = 0; row < 4; row++) {
    expect(peaks.valueAt(row, 0)).toBeUndefined();
    await settled();
  }
  expect(said.mock.calls).toEqual([[disposed]]);
  peaks.destroy();
  said.mockRestore();
});

test("a view that is gone has nothing to say", async () => {
  const said = vi.spyOn(console, "error").mockImplementation(() => {});
  new DevicePeaks(
    tensor(() => Promise.reject(disposed)),
    options,
    () => {},
  ).destroy();
  await settled();
  expect(said).not.toHaveBeenCalled();
  said.mockRestore();
});
