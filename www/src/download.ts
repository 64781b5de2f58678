/** Gives the person a file. */
export function download(name: string, content: string | Uint8Array, type = "application/octet-stream"): void {
  const address = URL.createObjectURL(new Blob([content as BlobPart], { type }));
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  URL.revokeObjectURL(address);
}
