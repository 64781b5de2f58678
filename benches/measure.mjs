// All that is measured in one page, or in Node.js.
import { contenders, threadsOf } from "./contenders/index.mjs";
import { gpuPeak } from "./gpu.mjs";
import { peaks } from "./peak.mjs";
import { race, warmUp } from "./rounds.mjs";
import { check, reference, WARM_UP, WrongResult, withNumbers } from "./work.mjs";

const label = ({ contender, variant }) => `${contender}, ${variant}`;

/**
 * `{ peak, races, notRun }`: a race is a case with, for each entrant, its samples in milliseconds, one a round.
 * Of all contenders on "cpu" or "webgpu", or of those named in `only`; `where` is what they start with.
 */
export async function measure({ on, cases, rounds, only }, where) {
  const notRun = [];
  const miss = (entrant, { message }, { work, size, causal } = {}) => {
    notRun.push({ ...entrant, ...(work && { work, size, causal }), reason: message });
    console.log(`NOT RUN: ${label(entrant)}: ${work ? `${work} ${size}: ` : ""}${message}`);
  };
  const started = [];
  for (const contender of contenders[on].filter(({ name }) => !only || only.includes(name))) {
    for (const variant of contender.variants) {
      const { kind, name } = contender;
      const entrant = { kind, contender: name, variant, threads: threadsOf(contender, variant, where.threads) };
      try {
        started.push({ entrant, works: await contender.start(variant, where) });
      } catch (reason) {
        miss(entrant, reason);
      }
    }
  }

  /** Who does a case, each with a checked job; `cannot` hears of the others. */
  async function entries(spec, cannot) {
    const problem = withNumbers(spec);
    const expected = reference(problem);
    const ready = [];
    for (const { entrant, works } of started) {
      for (const work of [spec.work, spec.beside].filter((work) => work && (work in works || spec.without in works))) {
        try {
          const job = await (works[work] ?? works[spec.without])(problem);
          check(label(entrant), work, await job.run(), expected);
          ready.push({ entrant: { ...entrant, work }, job });
        } catch (reason) {
          if (reason instanceof WrongResult) throw reason;
          cannot(entrant, reason, { ...spec, work });
        }
      }
    }
    return ready;
  }

  const free = async (ready) => {
    for (const { job } of ready) await job.free?.();
  };

  const peak = await (on === "webgpu" ? gpuPeak() : peaks());

  const wanted = new Set(cases.map(({ work }) => work));
  for (const spec of WARM_UP.filter(({ work }) => wanted.has(work))) {
    const ready = await entries(spec, () => {});
    for (const { job } of ready) await warmUp(job);
    await free(ready);
  }

  const races = [];
  for (const spec of cases) {
    const ready = await entries(spec, miss);
    const samples = await race(
      ready.map(({ job }) => job),
      rounds,
    );
    await free(ready);
    races.push({ spec, entrants: ready.map(({ entrant }, index) => ({ ...entrant, samples: samples[index] })) });
    console.log(
      `${spec.work} ${spec.size}${spec.causal ? ", causal" : ""}: ${ready.length} contenders, ${rounds} rounds`,
    );
  }
  return { peak, races, notRun };
}

/** Milliseconds from the import of a contender's code to its first result, which is checked; for a fresh page. */
export async function firstResult(contender, variant, spec, where) {
  const problem = withNumbers(spec);
  const expected = reference(problem);
  const { start } = contenders.cpu.find(({ name }) => name === contender);
  const begin = performance.now();
  const works = await start(variant, where);
  const job = await works.mha(problem);
  const found = await job.run();
  const taken = performance.now() - begin;
  check(`${contender}, ${variant}`, "mha", found, expected);
  return taken;
}
