// Saved queries, what a viewer is offered, runs on a phone, and a server that stands still: on the mock server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launch } from './browser.mjs';
import { keepsQueries, looksAtTables, sortsOnAPhone } from './queries.mjs';
import { complaints, stepper } from './steps.mjs';
import { noticesAServerThatStandsStill } from './still.mjs';

// states.spec, keys.spec and pages.spec have those above.
const port = 8195;
const base = `http://127.0.0.1:${port}`;
let browser;
let server;

before(async () => {
  server = spawn(
    process.execPath,
    [fileURLToPath(new URL('../dev/run.mjs', import.meta.url)), 'mock', '--port', String(port)],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await new Promise((up) => server.stdout.once('data', up));
  browser = await launch();
});
after(async () => {
  await browser?.close();
  server?.kill();
});

test('saved queries, viewers, a phone, a server that stands still', async (t) => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  t.after(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(8_000);
  const wrong = complaints(page);
  const step = stepper(t, page);
  await page.goto(`${base}/signin?token=mock`);
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await keepsQueries(page, await context.newPage(), base, step);
  await looksAtTables(page, base, step);
  await step('every page says that the server stands still', () =>
    noticesAServerThatStandsStill(context, server, base),
  );
  await sortsOnAPhone(page, base, step);
  assert.deepEqual(wrong, []);
});
