import type { View } from "./view.ts";

/** A view whose picture can be saved. */
export interface PictureView<Options> extends View<Options> {
  /** The picture as an SVG file, with its axes, labels and legend, in the page's theme. */
  toSvg(): string;
  /** The same as PNG, at twice its size. */
  toPng(): Promise<Blob>;
}

const SCALE = 2;

export async function png(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.naturalWidth * SCALE;
  canvas.height = image.naturalHeight * SCALE;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("the picture is too large for PNG"))));
  });
}
