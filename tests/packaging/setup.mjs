// Packs the package and installs it as a user does, once for all tests of it; and what its consumers are made with.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const repository = fileURLToPath(new URL("../..", import.meta.url));
const consumers = fileURLToPath(new URL("consumers", import.meta.url));

function npm(args, cwd) {
  return execFileSync("npm", args, { cwd, encoding: "utf8", stdio: "pipe", shell: process.platform === "win32" });
}

export default function setup({ provide }) {
  const folder = mkdtempSync(path.join(tmpdir(), "attnscope-"));
  const [packed] = JSON.parse(npm(["pack", "--json", "--pack-destination", folder], repository));
  writeFileSync(path.join(folder, "package.json"), '{ "private": true, "type": "module" }');
  npm(["install", "--prefer-offline", "--no-audit", "--no-fund", packed.filename], folder);
  const missing = toolsMissing();
  if (missing && process.env.CI) throw new Error(`the consumers' own packages could not be installed: ${missing}`);
  if (!missing) {
    // The installed package itself, not a link to the repository.
    for (const name of ["attnscope", "d3-format"]) {
      const into = path.join(consumers, "node_modules", name);
      rmSync(into, { recursive: true, force: true });
      cpSync(path.join(folder, "node_modules", name), into, { recursive: true });
    }
  }
  provide("folder", folder);
  provide("packed", { tarball: path.join(folder, packed.filename), files: packed.files, size: packed.unpackedSize });
  provide("consumers", missing ? null : consumers);
  return () => {
    rmSync(folder, { recursive: true });
    if (missing) console.warn(`\nno network (${missing}): THE TESTS OF BUNDLERS, PAGES AND RUNTIMES WERE SKIPPED\n`);
  };
}

/** Installs bundlers, frameworks and runtimes where their lock changed; says why it could not. */
function toolsMissing() {
  const hash = createHash("sha256")
    .update(readFileSync(path.join(consumers, "package-lock.json")))
    .digest("hex");
  const stamp = path.join(consumers, "node_modules/.package-lock.sha256");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === hash) return null;
  try {
    npm(["ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"], consumers);
  } catch (error) {
    return String(error.stderr).split("\n")[0];
  }
  writeFileSync(stamp, hash);
  return null;
}
