// Memory of a live run's page, on a mock server whose run is an hour old.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { having, snapshot } from './heap.mjs';
import { onMock } from './mock.mjs';
import { until } from './steps.mjs';

// Few enough seconds that the page first joins its oldest ones during the test.
process.env.MOCK_LIVE_SECONDS = '3705';
const { base, open, find } = onMock(8200);

test('seconds that are not shown are not kept', async (t) => {
  const { context, page, wrong } = await open(t, { timeout: 60_000 });
  const workers = page.waitForRequest((r) => new URL(r.url()).searchParams.get('worker_id') === '*');
  await page.goto(`${base}/runs/${await find(page, 'checkout peak', 'RUNNING')}`);
  await page.getByText('Latency heat map').waitFor();
  // Worker curves cover the last minute: the hour before is not loaded for them.
  const from = Number(new URL((await workers).url()).searchParams.get('from_seconds'));
  assert.ok(from > 3400, `the seconds of run workers are asked for from ${from} on`);
  const cdp = await context.newCDPSession(page);
  const seconds = async () => having(await snapshot(cdp), ['byKind', 'byClass', 'histogram']);
  await until(seconds, (n) => n >= 3600, 'not an hour of seconds', 30_000);
  await page.locator('.resolution').filter({ hasText: 'A point stands for up to 2' }).waitFor();
  // 120 of 240 are freed at once, and the two earlier drawings with them; leaks would leave 3 840 or more.
  await until(seconds, (n) => n <= 3720, 'what was joined is still there', 30_000);
  assert.deepEqual(wrong, []);
});
