/** Gives the person a file. A Blob has a type of its own. */
export function download(name: string, content: string | Uint8Array | Blob, type = "application/octet-stream"): void {
  const blob = content instanceof Blob ? content : new Blob([content as BlobPart], { type });
  const address = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
