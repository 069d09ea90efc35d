// The mock server and a browser for the tests of one file.
import { spawn } from 'node:child_process';
import { after, before } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch } from './browser.mjs';
import { complaints, stepper } from './steps.mjs';

/** mockServer starts a mock server; kill() of the result stops it. */
export async function mockServer(port, ...more) {
  const script = fileURLToPath(new URL('../dev/run.mjs', import.meta.url));
  const server = spawn(process.execPath, [script, 'mock', '--port', String(port), ...more], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((up) => server.stdout.once('data', up));
  return server;
}

/** onMock starts both before the tests of a file. Each file has its own port: 8192 to 8201 are taken. */
export function onMock(port) {
  const base = `http://127.0.0.1:${port}`;
  let browser;
  let server;
  before(async () => {
    server = await mockServer(port);
    browser = await launch();
  });
  after(async () => {
    await browser?.close();
    server?.kill();
  });
  const signIn = async (page) => {
    await page.goto(`${base}/signin?token=mock`);
    await page.getByRole('heading', { name: 'Home' }).waitFor();
  };
  return {
    base,
    signIn,
    /** The server's process, to be stopped. */
    server: () => server,
    /** open returns a page in a context of its own, signed in by default. */
    async open(t, { signedIn = true, timeout = 8_000, ...options } = {}) {
      const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
      t.after(() => context.close());
      const page = await context.newPage();
      page.setDefaultTimeout(timeout);
      const wrong = complaints(page);
      if (signedIn) await signIn(page);
      return { context, page, wrong, step: stepper(t, page) };
    },
    /** find returns the id of the newest run of a name, optionally in a state. */
    async find(page, name, status) {
      const { runs } = await (await page.request.get(`${base}/api/runs?limit=200`)).json();
      return runs.find((r) => r.test_name === name && (!status || r.status === status)).run_id;
    },
  };
}
