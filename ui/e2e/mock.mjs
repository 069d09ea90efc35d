// The mock server and a browser, for the tests of one file.
import { spawn } from 'node:child_process';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch } from './browser.mjs';
import { complaints, stepper } from './steps.mjs';

/** Starts both before the tests of the file that calls it, each of which opens a page of its own. */
export function onMock(port) {
  const base = `http://127.0.0.1:${port}`;
  let browser;
  let server;
  before(async () => {
    const script = fileURLToPath(new URL('../dev/run.mjs', import.meta.url));
    server = spawn(process.execPath, [script, 'mock', '--port', String(port)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await new Promise((up) => server.stdout.once('data', up));
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.kill();
  });
  return {
    base,
    /** A page that is signed in. */
    async open(t) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
      t.after(() => context.close());
      const page = await context.newPage();
      page.setDefaultTimeout(8_000);
      const wrong = complaints(page);
      await page.goto(`${base}/signin?token=mock`);
      await page.getByRole('heading', { name: 'Home' }).waitFor();
      return { page, wrong, step: stepper(t, page) };
    },
    async find(page, name, status) {
      const { runs } = await (await page.request.get(`${base}/api/runs?limit=200`)).json();
      return runs.find((r) => r.test_name === name && (!status || r.status === status)).run_id;
    },
  };
}
