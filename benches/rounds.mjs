// Measuring in turns: a machine is noisy, so that only neighbouring samples may be compared.

const WARM_UP_MS = 300;
/** A sample is as many calls as take about this long: much more than a core that was idle needs to come back, on a shared machine. */
const SAMPLE_MS = 100;

/** Milliseconds of one call, over some. */
async function sample(run, calls) {
  const start = performance.now();
  for (let call = 0; call < calls; call++) await run();
  return (performance.now() - start) / calls;
}

/** Calls for a while; gives the milliseconds of the fastest. */
export async function warmUp({ run }) {
  let fastest = Infinity;
  for (const start = performance.now(); performance.now() - start < WARM_UP_MS; ) {
    fastest = Math.min(fastest, await sample(run, 2));
  }
  return fastest;
}

/** A list of samples for each job, one a round; every other round goes backwards. */
export async function race(jobs, rounds) {
  const runners = [];
  for (const job of jobs) {
    const calls = Math.max(1, Math.round(SAMPLE_MS / (await warmUp(job))));
    runners.push({ run: job.run, calls, samples: [] });
  }
  for (let round = 0; round < rounds; round++) {
    for (const { run, calls, samples } of round % 2 === 0 ? runners : runners.toReversed()) {
      samples.push(await sample(run, calls));
    }
  }
  return runners.map(({ samples }) => samples);
}

export function median(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}
