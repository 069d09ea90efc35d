// Keyboard control, on the mock server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onMock } from './mock.mjs';
import { exactTile, until } from './steps.mjs';

const { base, open, find } = onMock(8196);

test('charts by the keyboard', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'first run');
  const chart = (name) => page.getByRole('application', { name });
  const announced = (name) =>
    page
      .locator('.chart', { has: chart(name) })
      .getByRole('status')
      .first()
      .innerText();
  await step('the arrows move the cursor, and what is there is read out', async () => {
    await page.goto(`${base}/runs/${id}`);
    await chart('Latency percentiles').focus();
    await page.keyboard.press('Home');
    const first = await announced('Latency percentiles');
    assert.match(first, /^\d+s: P99 [\d.]+ (ms|µs), P95 [\d.]+ (ms|µs), P50 /);
    await page.keyboard.press('ArrowRight');
    const next = await announced('Latency percentiles');
    assert.notEqual(next.split(':')[1], first.split(':')[1]);
    await page.keyboard.press('ArrowLeft');
    assert.equal(await announced('Latency percentiles'), first);
    await page.keyboard.press('End');
    const last = await announced('Latency percentiles');
    await page.keyboard.press('ArrowRight');
    assert.equal(await announced('Latency percentiles'), last, 'there is nothing behind the end');
  });
  await step('plus zooms all charts, and Back undoes it', async () => {
    await page.keyboard.press('+');
    await page.waitForURL(/range=/);
    await page.goBack();
    await page.waitForURL((url) => !url.searchParams.has('range'));
  });
  await step('Enter opens the executions of the second', async () => {
    await chart('Operations per second, by kind').focus();
    await page.keyboard.press('Home');
    await page.keyboard.press('Enter');
    await page.waitForURL(/tab=executions.*since=.*before=/);
    await page.getByText('Single executions').waitFor();
  });
  await step('in the heat map up and down move between cells, and Enter opens one', async () => {
    await page.goto(`${base}/runs/${id}`);
    await chart('Latency heat map').focus();
    await page.keyboard.press('End');
    const low = await announced('Latency heat map');
    assert.match(low, /ops$/);
    await page.keyboard.press('ArrowUp');
    assert.notEqual(await announced('Latency heat map'), low);
    await page.keyboard.press('Enter');
    await page.waitForURL(/tab=executions.*over=.*upto=/);
  });
  assert.deepEqual(wrong, []);
});

test('from a template to a running test by the keyboard', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('takes 25 keys at most, beside what is typed', async () => {
    let keys = 0;
    const press = async (key, times = 1) => {
      for (let i = 0; i < times; i++, keys++) await page.keyboard.press(key);
    };
    await press('g');
    await press('t');
    await page.getByRole('heading', { name: 'Templates' }).waitFor();
    await page.getByRole('link', { name: 'first run' }).waitFor();
    await press('n');
    await page.waitForURL(/\/templates\/new/);
    const name = page.getByLabel('Name', { exact: true });
    await name.waitFor();
    const focused = (el) => el.evaluate((e) => e === document.activeElement);
    while (!(await focused(name)) && keys < 25) await press('Tab');
    await page.keyboard.press('Control+A');
    keys++;
    await page.keyboard.type('by keyboard');
    await press('Control+Enter');
    await page.waitForURL(/\/runs\//);
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n > 0,
      'live figures',
    );
    t.diagnostic(`${keys} keys`);
    assert.ok(keys <= 25, `${keys} keys`);
  });
  assert.deepEqual(wrong, []);
});

test('a long log of a run that goes on', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'checkout peak', 'RUNNING');
  const lines = page.locator('.log-line');
  await page.route(`**/api/runs/${id}/logs*`, async (r) => {
    const answer = await (await r.fetch()).json();
    const of = (n) => ({ ...answer.logs[0], seq: n - 1000, message: `the line ${n}` });
    const old = answer.logs.length > 0 ? Array.from({ length: 1000 }, (_, i) => of(i + 1)) : [];
    await r.fulfill({ json: { ...answer, logs: [...old, ...answer.logs] } });
  });
  const count = (ok, what) => until(() => lines.count(), ok, what);
  const log = page.locator('.log');
  await step('shows its newest lines', async () => {
    await page.goto(`${base}/runs/${id}`);
    await count((n) => n === 200, 'lines of a log that is followed');
    const left = () => log.evaluate((e) => e.scrollHeight - e.scrollTop - e.clientHeight);
    await until(left, (n) => n < 24, 'it is at its end');
  });
  await step('and those before them where somebody reads, who stays where they are', async () => {
    await log.evaluate((e) => e.scrollTo(0, 0));
    const name = await page
      .getByText(/^the line \d+$/)
      .first()
      .innerText();
    const top = async (l) => (await l.boundingBox()).y;
    const y = async () => Math.round((await top(page.getByText(name, { exact: true }))) - (await top(log)));
    const was = await y();
    await page.getByRole('button', { name: /earlier lines$/ }).click();
    await count((n) => n > 900, 'earlier lines');
    assert.ok(Math.abs((await y()) - was) < 40, `the line moved from ${was} to ${await y()}`);
    assert.equal(await page.getByRole('checkbox', { name: 'Follow' }).isChecked(), false);
  });
  await step('follows again', async () => {
    await page.getByRole('checkbox', { name: 'Follow' }).check();
    await count((n) => n === 200, 'the newest lines');
  });
  assert.deepEqual(wrong, []);
});
