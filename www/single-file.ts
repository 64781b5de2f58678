// The page as one file: all that a browser needs to open it from a disk, under a policy that lets it fetch nothing.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";
import { build, type InlineConfig, type Plugin, type Rolldown } from "vite";
import { licencesOf } from "./licences.ts";
import { NO_STATE } from "./src/page-file.ts";

interface Sources {
  /** The page on a site. */
  readonly page: string;
  /** What the file begins with. */
  readonly entry: string;
  /** WebAssembly by the ids of the elements that hold it. */
  readonly parts: Readonly<Record<string, string>>;
}

/** Emits `attnscope.html`. `config` is that of the page. */
export function singleFile(sources: Sources, config: InlineConfig): Plugin {
  return {
    name: "single-file",
    apply: "build",
    async generateBundle() {
      const { script, style, notice } = await bundled(sources.entry, config);
      const policy = [
        "default-src 'none'",
        `script-src ${hashOf(script)} 'wasm-unsafe-eval'`,
        "worker-src blob:",
        `style-src ${hashOf(style)}`,
        "font-src data:",
        "img-src data: blob:",
        "base-uri 'none'",
        "form-action 'none'",
      ].join("; ");
      const body = [
        NO_STATE,
        ...Object.entries(sources.parts).map(
          ([id, part]) => `<script type="text/plain" id="${id}">${packed(part)}</script>`,
        ),
        `<script type="module">${script}</script>`,
      ].join("\n");
      const places: [RegExp, string][] = [
        [/default-src 'none';[^"]*/, policy],
        [/(?=<\/head>)/, `<style>${style}</style>\n`],
        [/<script type="module" .*<\/script>/, body],
        [/(?=<\/html>)/, `<!--\n${notice}-->\n`],
      ];
      const source = places.reduce(
        (page, [place, text]) => {
          if (!place.test(page)) this.error(`${sources.page} has no ${place}`);
          return page.replace(place, () => text);
        },
        readFileSync(sources.page, "utf8"),
      );
      this.emitFile({ type: "asset", fileName: "attnscope.html", source });
    },
  };
}

async function bundled(
  entry: string,
  config: InlineConfig,
): Promise<{ script: string; style: string; notice: string }> {
  const output = { codeSplitting: false };
  const built = (await build({
    ...config,
    configFile: false,
    logLevel: "warn",
    // In a page from a disk a module cannot come out of a Blob.
    worker: { format: "iife", rolldownOptions: { ...config.worker?.rolldownOptions, output } },
    build: {
      ...config.build,
      write: false,
      modulePreload: false,
      cssCodeSplit: false,
      // WebAssembly stands in the file by itself.
      assetsInlineLimit: (file) => file.endsWith(".woff2"),
      rolldownOptions: { ...config.build?.rolldownOptions, input: entry, output },
    },
  })) as Rolldown.RolldownOutput;
  const [{ code }, ...others] = built.output;
  const style = others.find(({ fileName }) => fileName.endsWith(".css")) as Rolldown.OutputAsset;
  return { script: inScript(code), style: String(style.source), notice: licencesOf(built.output) };
}

/** Where a script holds these it is in text, in which "<" may be escaped; as they are they would end it, or hide its end. */
function inScript(code: string): string {
  return code.replaceAll(/<(?=\/script|!--)/gi, "\\x3C");
}

/** Of exactly what stands between the tags. */
function hashOf(content: string): string {
  return `'sha256-${createHash("sha256").update(content).digest("base64")}'`;
}

function packed(file: string): string {
  return deflateRawSync(readFileSync(file), { level: 9 }).toString("base64");
}
