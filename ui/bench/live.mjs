// What the page of a run that goes on costs the browser: script and all work of the main thread per second, and what the
// heap grows by. The run is one of the mock server's, an hour old, with every chart that a live page has and four run
// workers; the page is the one in dist. Times are CPU time of the main thread: what else runs on the machine does not
// count.
//   node bench/live.mjs [--minutes 10] [--seconds 60] [--history 3600] [--profile FILE.cpuprofile] [--shot FILE.png]
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../e2e/browser.mjs';
import { parts, snapshot } from '../e2e/heap.mjs';

const { values: flags } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seconds: { type: 'string', default: '60' },
    history: { type: 'string', default: '3600' },
    profile: { type: 'string' },
    shot: { type: 'string' },
  },
});

/** hottest lists a profile's self time by function. */
function hottest({ nodes, samples, timeDeltas }, limit) {
  const own = new Map();
  const byId = new Map(nodes.map((n) => [n.id, n.callFrame]));
  samples.forEach((id, i) => {
    const f = byId.get(id);
    const name = `${f.functionName || '(anonymous)'} ${f.url.split('/').at(-1)}:${f.lineNumber}:${f.columnNumber}`;
    own.set(name, (own.get(name) ?? 0) + timeDeltas[i] / 1000);
  });
  return [...own].sort((a, b) => b[1] - a[1]).slice(0, limit);
}

// Port 0 lets the system choose; the server prints it.
const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('../dev/run.mjs', import.meta.url)), 'mock', '--port', '0'],
  {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, MOCK_LIVE_SECONDS: flags.history, MOCK_LIVE_OPEN: '1', MOCK_LIVE_WORKERS: '4' },
  },
);
const base = await new Promise((up) => server.stdout.once('data', (d) => up(String(d).match(/http:\S+\d/)[0])));
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1600, height: 2800 } });
  const page = await context.newPage();
  const requests = [];
  page.on('request', (r) => requests.push(r.url()));
  await page.goto(`${base}/signin?token=mock`);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  requests.length = 0;
  const began = Date.now();
  await page.goto(`${base}/`);
  await page.getByText('Recent runs').waitFor();
  const first = requests.filter((u) => /\.(js|css)$/.test(u)).length;
  console.log(`home: ${requests.length} requests, ${first} scripts and styles, there after ${Date.now() - began} ms`);
  const { runs } = await (await page.request.get(`${base}/api/runs?limit=200`)).json();
  const run = runs.find((r) => r.test_name === 'checkout peak' && r.status === 'RUNNING');
  await page.goto(`${base}/runs/${run.run_id}`);
  await page.getByText('Latency heat map').waitFor();
  await page.waitForTimeout(10_000);
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const metrics = async () => {
    const { metrics: all } = await cdp.send('Performance.getMetrics');
    return Object.fromEntries(all.map((m) => [m.name, m.value]));
  };
  /** floor is the smallest heap, in MiB: between two payloads more is held than after drawing. */
  const floor = async () => {
    let least = Infinity;
    for (let n = 0; n < 8; n++) {
      // The second collection frees what only weak maps or finalizers held.
      for (let again = 0; again < 2; again++) await cdp.send('HeapProfiler.collectGarbage');
      least = Math.min(least, (await cdp.send('Runtime.getHeapUsage')).usedSize / 2 ** 20);
      await page.waitForTimeout(700);
    }
    return least;
  };
  const seen = await page.evaluate(() => {
    const within = (el) => el.getBoundingClientRect().bottom <= innerHeight;
    const of = (what) => [...document.querySelectorAll(what)].filter(within).length;
    return `${of('.chart canvas')} charts and ${of('svg.spark')} curves in sight`;
  });
  console.log(seen);
  if (flags.shot) await page.screenshot({ path: flags.shot });
  if (flags.profile) {
    await cdp.send('Profiler.enable');
    await cdp.send('Profiler.setSamplingInterval', { interval: 500 });
    await cdp.send('Profiler.start');
    await page.waitForTimeout(Number(flags.seconds) * 1000);
    const { profile } = await cdp.send('Profiler.stop');
    writeFileSync(flags.profile, JSON.stringify(profile));
    for (const [name, ms] of hottest(profile, 40)) console.log(`${(ms / flags.seconds).toFixed(2)} ms/s ${name}`);
  } else {
    const start = await floor();
    console.log(`at first: heap ${start.toFixed(2)} MiB`);
    let of;
    const rounds = (Number(flags.minutes) * 60) / Number(flags.seconds);
    for (let round = 1; round <= rounds; round++) {
      const [from, before] = [Date.now(), await metrics()];
      await page.waitForTimeout(Number(flags.seconds) * 1000);
      const [after, took] = [await metrics(), (Date.now() - from) / 1000];
      const per = (name) => ((1000 * (after[name] - before[name])) / took).toFixed(1);
      const heap = await floor();
      console.log(
        `${round * flags.seconds} s: script ${per('ScriptDuration')} ms/s, all ${per('TaskDuration')} ms/s, ` +
          `heap ${heap.toFixed(2)} MiB (${(heap - start).toFixed(2)}), load ${loadavg()[0].toFixed(1)}`,
      );
      // After settling: the growth from then on, and its share of page data.
      if (round === 1 || round === rounds) {
        const now = parts(await snapshot(cdp));
        const kib = (part) => {
          const since = of ? ` (${((now[part] - of[part]) / 1024).toFixed(0)})` : '';
          return `${part} ${(now[part] / 1024).toFixed(0)} KiB${since}`;
        };
        console.log(`by a snapshot: ${Object.keys(now).map(kib).join(', ')}`);
        of ??= now;
      }
    }
  }
} finally {
  await browser.close();
  server.kill();
}
