// What the page of a run that goes on costs the browser: script and all work of the main thread per second, and what the
// heap grows by. The run is one of the mock server's, an hour old; the page is the one in dist.
//   node bench/live.mjs [--minutes 10] [--history 3600]
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../e2e/browser.mjs';

const { values: flags } = parseArgs({
  options: { minutes: { type: 'string', default: '10' }, history: { type: 'string', default: '3600' } },
});
const port = 8195;
const base = `http://127.0.0.1:${port}`;
const server = spawn(
  process.execPath,
  [fileURLToPath(new URL('../dev/run.mjs', import.meta.url)), 'mock', '--port', String(port)],
  { stdio: ['ignore', 'pipe', 'inherit'], env: { ...process.env, MOCK_LIVE_SECONDS: flags.history } },
);
await new Promise((up) => server.stdout.once('data', up));
const browser = await launch();
try {
  const context = await browser.newContext({ viewport: { width: 1600, height: 1400 } });
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
  console.log(`home: ${first} scripts and styles, interactive after ${Date.now() - began} ms`);
  const { runs } = await (await page.request.get(`${base}/api/runs?limit=200`)).json();
  const run = runs.find((r) => r.test_name === 'checkout peak' && r.status === 'RUNNING');
  await page.goto(`${base}/runs/${run.run_id}`);
  await page.getByText('Latency heat map').waitFor();
  await page.waitForTimeout(10_000);
  const cdp = await context.newCDPSession(page);
  await cdp.send('Performance.enable');
  const measure = async () => {
    await cdp.send('HeapProfiler.collectGarbage');
    const { metrics } = await cdp.send('Performance.getMetrics');
    return Object.fromEntries(metrics.map((m) => [m.name, m.value]));
  };
  const charts = await page.locator('.chart canvas').count();
  let before = await measure();
  const start = before;
  for (let minute = 1; minute <= Number(flags.minutes); minute++) {
    const from = Date.now();
    await page.waitForTimeout(60_000);
    const after = await measure();
    const seconds = (Date.now() - from) / 1000;
    const per = (name) => ((1000 * (after[name] - before[name])) / seconds).toFixed(1);
    console.log(
      `minute ${minute}: ${charts} charts, script ${per('ScriptDuration')} ms/s, all ${per('TaskDuration')} ms/s, ` +
        `heap ${(after.JSHeapUsedSize / 2 ** 20).toFixed(2)} MiB ` +
        `(${((after.JSHeapUsedSize - start.JSHeapUsedSize) / 2 ** 20).toFixed(2)})`,
    );
    before = after;
  }
} finally {
  await browser.close();
  server.kill();
}
