// What is short on the page: the form, a finished run, the palette; and a card that breaks, on the mock server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessible } from './axe.mjs';
import { onMock } from './mock.mjs';

const { base, open, find } = onMock(8201);

test('a JavaScript error in one card', async (t) => {
  const { page, step } = await open(t);
  await step('leaves the rest of the page', async () => {
    const id = await find(page, 'first run');
    await page.route(`**/api/runs/${id}`, async (route) => {
      const response = await route.fetch();
      const run = await response.json();
      run.summary.histogram = [null];
      await route.fulfill({ response, json: run });
    });
    await page.goto(`${base}/runs/${id}?tab=distribution`);
    await page.getByText('“Distribution” could not be shown.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).waitFor();
    assert.equal(await page.locator('.tile').count(), 6);
    await page.getByRole('tab', { name: 'Accounting' }).click();
    await page.getByText('Everything is accounted for').waitFor();
  });
});

test('a finished run at 1440 by 900', async (t) => {
  const { page, step, wrong } = await open(t, { viewport: { width: 1440, height: 900 } });
  for (const name of ['first run', 'orders under contention', 'limit of orders, five times'])
    await step(`shows its charts near its head: ${name}`, async () => {
      await page.goto(`${base}/runs/${await find(page, name)}`);
      const first = page.locator('.chart, .level-charts figure').first();
      await first.waitFor();
      const head = await page.locator('.page-head').boundingBox();
      const chart = await first.boundingBox();
      const distance = chart.y - head.y - head.height;
      assert.ok(distance <= 360, `the charts begin ${distance} px below the head`);
    });
  await step('opens its notes and baseline from one line, which stays open', async () => {
    await page.goto(`${base}/runs/${await find(page, 'memory guard')}`);
    assert.equal(await page.getByRole('region', { name: 'Guardrails' }).count(), 0);
    await page.locator('.about-run > summary').click();
    await page.getByRole('region', { name: 'Guardrails' }).waitFor();
    await page.reload();
    await page.getByRole('region', { name: 'Guardrails' }).waitFor();
    await accessible(page, 'the notes of a run');
  });
  assert.deepEqual(wrong, []);
});

test('the palette', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('finds runs, templates, connections, pages and actions by the keyboard alone', async () => {
    const find = page.getByRole('combobox', { name: /^Find runs/ });
    for (const [text, heading] of [
      ['nodes', 'Nodes'],
      ['orders under contention', 'orders under contention'],
      ['settings: server', 'Settings'],
    ]) {
      await page.keyboard.press('Control+k');
      await find.fill(text);
      await page
        .getByRole('option', { selected: true })
        .filter({ hasText: new RegExp(text, 'i') })
        .waitFor();
      await accessible(page, 'the palette');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: heading }).first().waitFor();
    }
    await page.keyboard.press('Control+k');
    await find.fill('no such thing at all');
    await page.getByText('Nothing matches').waitFor();
    await page.keyboard.press('Escape');
    assert.equal(await find.count(), 0);
  });
  assert.deepEqual(wrong, []);
});

test('the form of a template', async (t) => {
  const { page, step, wrong } = await open(t);
  const visibleFields = () => page.locator('.form-section .field').filter({ visible: true }).count();
  await step('shows at most 14 fields, whatever the load', async () => {
    await page.goto(`${base}/templates/new`);
    for (const mode of ['CONCURRENCY', 'QPS', 'FIND_MAX_CONCURRENCY']) {
      await page.getByLabel('Load mode').selectOption(mode);
      const n = await visibleFields();
      assert.ok(n >= 8 && n <= 14, `${mode} shows ${n} fields`);
    }
    await page.getByLabel('Search over').selectOption('rate');
    assert.ok((await visibleFields()) <= 14);
  });
  await step('has its text from the start, and it is that of the form at once', async () => {
    await page.goto(`${base}/templates/new`);
    await page.getByRole('button', { name: 'YAML' }).click();
    const text = page.getByRole('textbox', { name: /^Template as YAML/ });
    assert.match(await text.inputValue(), /workload:/);
    await page.getByRole('button', { name: 'Form' }).click();
    await page.getByLabel('Name', { exact: true }).fill('quick');
    await page.getByRole('button', { name: 'YAML' }).click();
    assert.match(await text.inputValue(), /name: quick/);
  });
  assert.deepEqual(wrong, []);
});

test('figures that are not there, and those of a stand-in', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('no rate where the record is lost, with the reason', async () => {
    await page.goto(`${base}/runs/${await find(page, 'record lost')}?tab=kinds`);
    await page.getByText('By statement').waitFor();
    assert.equal(await page.locator('.tile', { hasText: 'Throughput' }).locator('.quantity').innerText(), '–');
    const reasons = await page.locator('.quantity[title*="is lost"]').count();
    assert.equal(reasons, 1 + 4 + 4, 'of the run, of its kinds, of its statements');
  });
  await step('the word for a stand-in stays within its tile on a phone', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.goto(`${base}/runs/${await find(page, 'emulated table')}`);
    await page.getByText('Valid (emulated)').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
  });
  assert.deepEqual(wrong, []);
});

test('the audit log on a phone of 360 px', async (t) => {
  const { page, step, wrong } = await open(t, { viewport: { width: 360, height: 740 } });
  await step('is a list of cards, none of them cut by a name of 189 characters', async () => {
    await page.goto(`${base}/audit`);
    await page.getByText('connection.delete').waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360);
    assert.equal(await page.locator('.table.cards thead').isVisible(), false);
    for (const cell of await page.locator('.table.cards td').all()) {
      const box = await cell.boundingBox();
      assert.ok(box.x >= 0 && box.x + box.width <= 360, `a cell reaches from ${box.x} over ${box.width} px`);
    }
    await accessible(page, 'the audit log on a phone');
  });
  assert.deepEqual(wrong, []);
});
