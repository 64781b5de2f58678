// From samples to the figures, as JSON and as tables in Markdown.
import { median } from "./rounds.mjs";
import { operations } from "./work.mjs";

const isSame = (one) => (other) =>
  one.contender === other.contender && one.variant === other.variant && one.work === other.work;

/** The same work in the same place, by the build for one thread. */
const isTwin = (ours, other) =>
  other.work === ours.work && other.variant === ours.variant.replace("threads", "relaxed");

/**
 * Whom an entrant of ours is compared with: all others, but for an edit the whole pass that it saves, and for a start other
 * packages, since a bare product or loop has nothing to start.
 */
function rivals({ entrants }, ours) {
  if (["remask", "cell", "token"].includes(ours.work)) return entrants.filter(isSame({ ...ours, work: "trace" }));
  if (ours.work === "start") return entrants.filter(({ kind }) => kind === "package");
  return entrants.filter(({ kind }) => kind !== "ours");
}

export const fullName = ({ contender, variant }) => `${contender} (${variant})`;

function runsOf({ spec, entrants }) {
  return entrants.map(({ contender, variant, threads, work, samples }) => {
    const medianMs = median(samples);
    const gflops = work === "start" ? null : operations(work, spec) / medianMs / 1e6;
    const of = { work, size: spec.size, causal: spec.causal, threads, contender, variant };
    return { ...of, medianMs, minMs: Math.min(...samples), maxMs: Math.max(...samples), gflops };
  });
}

/** With several threads only what has them stands against others, and beside our own with one. */
function ratiosOf(race, threads) {
  const alone = (ours) =>
    race.entrants.find((other) => other.kind === "ours" && other.threads === 1 && isTwin(ours, other));
  const over = (ours, other) => median(ours.samples.map((time, round) => other.samples[round] / time));
  const fastest = (entrants) => entrants.toSorted((a, b) => median(a.samples) - median(b.samples))[0];
  return race.entrants
    .filter((entrant) => entrant.kind === "ours" && entrant.threads === threads)
    .flatMap((ours) => {
      const others = rivals(race, ours);
      const [best, bestPackage] = [others, others.filter(({ kind }) => kind === "package")].map(fastest);
      if (!best) return [];
      const ratio = over(ours, best);
      const one = threads > 1 && alone(ours);
      const { size, causal } = race.spec;
      const bestPeer = best.kind === "ours" ? `${fullName(best)}, whole pass` : fullName(best);
      const found = { work: ours.work, size, causal, threads, ours: fullName(ours), bestPeer, ratio };
      return [
        {
          ...found,
          ...(bestPackage && { bestPackage: fullName(bestPackage), ofPackage: over(ours, bestPackage) }),
          ...(one && { ofOneThread: over(ours, one) }),
        },
      ];
    });
}

/** A kernel of a pass: what it does in a second, and what share that is of the most that the device does. */
function kernelOf({ shader, shape, dispatches, operations, bytes, samples }, peak) {
  const medianMs = median(samples);
  const gflops = operations ? operations / medianMs / 1e6 : null;
  const gbps = bytes / medianMs / 1e6;
  const ofPeak = { computing: gflops && gflops / peak.gflops, copying: gbps / peak.gbps };
  return { shader, shape, dispatches, medianMs, gflops, gbps, ofPeak };
}

/** What `--json` writes. */
export function figures({ env, peak, races, kernels }) {
  const of = (each) => races.flatMap((race) => each(race, env.threads));
  const ofKernels = kernels?.map(({ spec: { work, size }, whole, kernels }) => {
    const rest = whole.map((time, round) => kernels.reduce((left, { samples }) => left - samples[round], time));
    const own = kernels.map((kernel) => kernelOf(kernel, peak));
    return { work, size, medianMs: median(whole), restMs: median(rest), kernels: own };
  });
  return { env, peak, runs: of(runsOf), ratios: of(ratiosOf), ...(ofKernels && { kernels: ofKernels }) };
}

const TITLES = {
  matmul: "Matrix product",
  product: "Matrix product by itself, its result left where it lies",
  mha: "Multi-head attention with the weights of each head",
  reuse: "Multi-head attention with the weights of each head, over the result before by who can",
  output: "Multi-head attention, its output alone",
  remask: "Another mask, beside the whole pass with its trace",
  cell: "Another cell of a mask, beside the whole pass with its trace",
  token: "Another token, beside the whole pass with its trace",
  start: "From the import to the first result, in a fresh page",
};

const rowName = ({ kind, work, ...of }) =>
  kind === "ours" ? `**${fullName(of)}**${work === "trace" ? ", whole pass" : ""}` : fullName(of);

const row = (cells) => `| ${cells.join(" | ")} |`;
const table = (head, rows) => [
  row(head),
  row(head.map((_, column) => (column === 0 ? "---" : "---:"))),
  ...rows.map(row),
];
const ms = (value) => (value < 100 ? value.toPrecision(3) : value.toFixed(0));

function caseTable({ spec, entrants }, { env, peak }, { runs, ratios }) {
  const here = ({ size, causal }) => size === spec.size && causal === spec.causal;
  const shape = ["m", "k", "n", "d", "h"].filter((name) => name in spec).map((name) => `${name} = ${spec[name]}`);
  const title = [`${TITLES[spec.work]}: ${spec.size}`, ...(spec.causal ? ["causal mask"] : [])].join(", ");
  const rows = entrants
    .map((entrant) => ({ entrant, run: runs.find((run) => here(run) && isSame(run)(entrant)) }))
    .toSorted((a, b) => a.run.medianMs - b.run.medianMs)
    .map(({ entrant, run }) => {
      const ratio = ratios.find(({ ours, work, ...at }) => here(at) && work === run.work && ours === fullName(run));
      // A build without relaxed instructions has the lower peak; a graphics processor has one.
      const isRelaxed = /^(relaxed|threads)/.test(run.variant);
      const limit = run.threads * (peak.gflops ?? (isRelaxed ? peak.relaxed : peak.simd128));
      return [
        rowName(entrant),
        ms(run.medianMs),
        `${ms(run.minMs)} to ${ms(run.maxMs)}`,
        ...(run.work === "start"
          ? [`${Math.round(env.bytes[fullName(run)] / 1000)} kB`]
          : [run.gflops.toPrecision(3), `${Math.round((100 * run.gflops) / limit)} %`]),
        ratio ? `${ratio.ratio.toFixed(2)} x ${ratio.bestPeer}` : "",
      ];
    });
  const speed = spec.work === "start" ? ["fetched, gzip"] : ["GFLOP/s", "of the peak"];
  const head = ["contender", "median ms", "range", ...speed, "times as fast as the best other"];
  return [`### ${title}`, "", shape.join(", "), "", ...table(head, rows), ""];
}

/** A table for each kind of work, sizes beside each other: median milliseconds, and the ratios of `ratiosOf`. */
function overview(races, { runs, ratios }) {
  const titleOf = ({ work, causal }) => `${TITLES[work]}${causal ? ", causal mask" : ""}`;
  return [...new Set(races.map(({ spec }) => titleOf(spec)))].flatMap((title) => {
    const group = races.filter(({ spec }) => titleOf(spec) === title);
    const sizes = group.map(({ spec }) => spec.size);
    const inGroup = ({ work, causal }) =>
      group.some(({ spec, entrants }) => spec.causal === causal && entrants.some((entrant) => entrant.work === work));
    const cells = (all, isRow, show) =>
      sizes.map((size) => {
        const found = all.find((one) => one.size === size && inGroup(one) && isRow(one));
        return found ? show(found) : "";
      });
    const entrants = [...new Map(group.flatMap(({ entrants }) => entrants).map((one) => [rowName(one), one])).values()];
    const times = entrants.map((entrant) => [
      rowName(entrant),
      ...cells(runs, isSame(entrant), ({ medianMs }) => ms(medianMs)),
    ]);
    const gain = (ours, than, of) => [
      `${fullName(ours)}: times as fast as ${than}`,
      ...cells(
        ratios,
        (one) => one.work === ours.work && one.ours === fullName(ours),
        (ratio) => ratio[of]?.toFixed(2) ?? "",
      ),
    ];
    const hasRatio = ({ work, ...of }) =>
      ratios.some((one) => one.work === work && one.ours === fullName(of) && inGroup(one));
    const gains = entrants
      .filter(({ kind, ...of }) => kind === "ours" && hasRatio(of))
      .flatMap((ours) => [
        gain(ours, "the best other", "ratio"),
        ...(ratios.some((one) => inGroup(one) && one.ours === fullName(ours) && one.ofPackage)
          ? [gain(ours, "the best package", "ofPackage")]
          : []),
        ...(ours.threads > 1 ? [gain(ours, "with one thread", "ofOneThread")] : []),
      ]);
    return [`### ${title}, ms`, "", ...table(["contender", ...sizes], [...times, ...gains]), ""];
  });
}

/** How long each kernel of a pass takes, and what is left of the pass for copies and JavaScript. */
function kernelTable({ work, size, medianMs, restMs, kernels }) {
  const percent = (share) => `${Math.round(100 * share)} %`;
  const rows = kernels.map(({ shader, shape, dispatches, medianMs: taken, gflops, gbps, ofPeak }) => [
    shader,
    shape,
    dispatches,
    ms(taken),
    percent(taken / medianMs),
    ...(gflops ? [gflops.toPrecision(3), percent(ofPeak.computing)] : ["", ""]),
    gbps.toPrecision(3),
    percent(ofPeak.copying),
  ]);
  const head = ["kernel", "of", "dispatches", "ms", "of the pass", "GFLOP/s", "of the peak", "GB/s", "of the peak"];
  const last = ["copies and JavaScript", "", "", ms(restMs), percent(restMs / medianMs), "", "", "", ""];
  return [`### The kernels of a pass: ${TITLES[work]}, ${size}`, "", ...table(head, [...rows, last]), ""];
}

/** What the machine can do at most. */
const peakLine = ({ gflops, gbps, ...builds }) =>
  gflops
    ? `Peak: ${gflops.toPrecision(3)} GFLOP/s in registers, ${gbps.toPrecision(3)} GB/s read and written by a copy`
    : `Peak in registers: simd128 ${builds.simd128.toFixed(1)} GFLOP/s, relaxed ${builds.relaxed.toFixed(1)} GFLOP/s`;

/** Tables for people, as Markdown. */
export function tables(result, summary) {
  const { env, peak, races } = result;
  const missing = env.notRun.map(({ contender, variant, work, size, causal, reason }) => {
    const what = work ? [work, size, causal && "causal"].filter(Boolean).join(" ") : "everything";
    return [fullName({ contender, variant }), what, reason];
  });
  return [
    `${env.date}, ${env.runtime}${env.adapter ? `, ${env.adapter}` : ""}, ${env.cores} cores (${env.load.toFixed(1)} busy before), ${env.threads} ${env.threads === 1 ? "thread" : "threads"}, ${env.rounds} rounds`,
    "",
    peakLine(peak),
    "",
    Object.entries(env.versions)
      .map(([name, version]) => `${name} ${version}`)
      .join(", "),
    "",
    ...races.flatMap((race) => caseTable(race, result, summary)),
    "## All sizes",
    "",
    ...overview(races, summary),
    ...(summary.kernels ?? []).flatMap(kernelTable),
    ...(missing.length ? ["### Not run", "", ...table(["contender", "what", "why"], missing), ""] : []),
  ].join("\n");
}
