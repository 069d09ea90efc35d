// One journey for each change, in a minute at most: from the first link by the form to a run, its live figures, its
// exact result and its place in the history. journey.spec.mjs is the whole of it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch } from './browser.mjs';
import { complaints, exactTile, stepper, until } from './steps.mjs';

const base = process.env.BASE_URL;
const token = process.env.SIGNIN_TOKEN;
let browser;

before(async () => {
  browser = await launch();
});
after(() => browser?.close());

test('from the first link to a result', { timeout: 60_000 }, async (t) => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const wrong = complaints(page);
  const step = stepper(t, page);
  const name = 'smoke';

  await step('signs in by the one-time link', async () => {
    await page.goto(`${base}/signin?token=${encodeURIComponent(token)}`);
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    assert.ok(!page.url().includes('token='), 'the token must leave the address bar');
  });

  await step('saves a template by the form', async () => {
    await page.getByRole('link', { name: 'New template' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('Connections', { exact: true }).fill('4');
    await page.getByLabel('Table', { exact: true }).fill('smoke_orders');
    await page.getByLabel('Rows', { exact: true }).fill('2000');
    await page.getByRole('textbox', { name: 'Duration' }).fill('8');
    await page.getByRole('textbox', { name: 'Warm-up' }).fill('1');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.waitForURL(/\/templates\/(?!new)/);
    await page.getByRole('heading', { name }).waitFor();
  });

  await step('starts the run and sees its figures change', async () => {
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/runs\//);
    await page.locator('.run-head').getByText('Measurement', { exact: true }).waitFor();
    const seen = new Set();
    await until(
      async () => {
        const n = await exactTile(page, 'Throughput');
        if (n > 0) seen.add(n);
        return seen.size;
      },
      (n) => n >= 2,
      'a throughput that changes',
    );
    assert.ok((await page.locator('.chart canvas').count()) >= 5, 'charts');
  });

  await step('reads the exact result, whose accounting balances', async () => {
    await page.getByRole('tab', { name: 'Accounting' }).waitFor({ timeout: 30_000 });
    assert.ok((await exactTile(page, 'Throughput')) > 0, 'an exact throughput');
    await page.getByRole('tab', { name: 'By kind' }).click();
    assert.ok((await page.locator('table tbody tr').count()) >= 2, 'rows for the kinds');
    await page.getByRole('tab', { name: 'Accounting' }).click();
    await page.getByText('Everything is accounted for').waitFor();
  });

  await step('finds the run in the history', async () => {
    await page.getByRole('link', { name: 'Runs', exact: false }).first().click();
    await page.locator('tbody tr', { hasText: name }).getByText('Completed').waitFor();
  });

  assert.deepEqual(wrong, [], 'the browser must have nothing to complain about');
  await context.close();
});
