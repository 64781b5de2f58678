import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import path from "node:path";

const TYPES = {
  html: "text/html",
  js: "text/javascript",
  mjs: "text/javascript",
  css: "text/css",
  wasm: "application/wasm",
};

/** A policy under which a page may run its own scripts and WebAssembly, and little else. */
export const STRICT = [
  "default-src 'none'",
  "script-src 'self' 'wasm-unsafe-eval'",
  "connect-src 'self'",
  "worker-src 'self'",
  "style-src 'self'",
  "img-src data:",
].join("; ");

/** What lets threads share memory. */
export const ISOLATION = {
  "Cross-Origin-Opener-Policy": "same-origin",
  "Cross-Origin-Embedder-Policy": "require-corp",
};

/** Serves a folder as any static host does; gives its address. */
export async function serve(folder, policy, headers = {}) {
  const server = createServer(async ({ url }, response) => {
    const { pathname } = new URL(url, "http://localhost");
    const type = TYPES[pathname.split(".").pop()] ?? "application/octet-stream";
    try {
      const body = await readFile(path.join(folder, path.normalize(pathname)));
      response.writeHead(200, {
        "Content-Type": type,
        ...(policy && { "Content-Security-Policy": policy }),
        ...headers,
      });
      response.end(body);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((listening) => server.listen(0, "localhost", listening));
  return { address: `http://localhost:${server.address().port}`, close: () => server.close() };
}
