// The way of a user from the first link to a result in other hands: guided steps, own SQL, a run at a rate that is
// marked and changed, its result by load, the report without a network, a shared link, a viewer.
import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** Has a context write down what its charts write onto their canvases, which no other reader sees. */
export async function readsCanvases(context) {
  await context.addInitScript(() => {
    const drawn = (globalThis.drawnTexts = new Set());
    const draw = CanvasRenderingContext2D.prototype.fillText;
    CanvasRenderingContext2D.prototype.fillText = function (text, ...where) {
      drawn.add(String(text));
      return draw.call(this, text, ...where);
    };
  });
}

/** Waits until a chart has written a text beside a line. */
const drawn = (page, text) =>
  until(
    () => page.evaluate(() => [...globalThis.drawnTexts]),
    (all) => all.includes(text),
    `“${text}” in a chart`,
  );

const first = 100;
const second = 300;

/** Makes a template of the statement that is on the page and has been tried, and starts it at a rate. */
export async function runsItsStatement(page, name) {
  await page.getByLabel('Name', { exact: true }).fill(name);
  await page.getByLabel('Load mode').selectOption('QPS');
  await page.getByLabel('Target rate').fill(String(first));
  await page.getByLabel('Connections', { exact: true }).fill('4');
  await page.getByRole('textbox', { name: 'Duration' }).fill('24');
  await page.getByRole('textbox', { name: 'Warm-up' }).fill('2');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.waitForURL(/\/templates\/(?!new)/);
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.waitForURL(/\/runs\//);
  await page.locator('.run-head').getByText('Measurement', { exact: true }).waitFor({ timeout: 60_000 });
}

/** Marks a moment and changes the rate while the run goes on; both are seen in the charts at once. */
export async function marksAndSteers(page) {
  const steering = page.getByRole('group', { name: 'Marks and load' });
  const dialog = page.getByRole('dialog');
  await until(
    () => page.locator('.tile-note', { hasText: 'target' }).innerText(),
    (s) => s.includes(`target ${first}`),
    'the rate that was asked for',
  );
  await page.waitForTimeout(4_000);
  await page.keyboard.press('m');
  await dialog.getByLabel('What happened').fill('index created');
  await dialog.getByRole('button', { name: 'Mark', exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
  const marks = page.getByRole('list', { name: 'Marked moments' });
  await marks.getByText('index created').waitFor();
  await drawn(page, 'index created');
  await page.waitForTimeout(3_000);
  await steering.getByRole('button', { name: 'Change rate' }).click();
  await dialog.getByLabel('Operations per second').fill(String(second));
  await dialog.getByRole('button', { name: 'Change it' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await marks.getByText(`rate ${second} /s`).waitFor();
  await until(
    () => page.locator('.tile-note', { hasText: 'target' }).innerText(),
    (s) => s.includes(`target ${second}`),
    'the rate that is asked for now',
  );
  await drawn(page, `rate ${second} /s`);
  await ofAllLoads(page);
}

/** The legend of latencies says that its figures of the whole measurement are of several loads. */
const ofAllLoads = (page) =>
  page
    .locator('.chart', { has: page.getByRole('application', { name: 'Latency percentiles' }) })
    .getByRole('columnheader', { name: 'all loads' })
    .waitFor();

const figure = async (cell) =>
  Number((await cell.locator('.quantity').getAttribute('title')).replaceAll(',', '').split(' ')[0]);

/** The result stands for each load, and these together are the whole. */
export async function readsItByLoad(page) {
  await page.getByRole('tab', { name: 'Accounting' }).waitFor({ timeout: 60_000 });
  await toldByLoad(page);
  await page.locator('.tile-note', { hasText: 'over 2 loads: each is below' }).waitFor();
  await ofAllLoads(page);
  await drawn(page, 'index created');
  await drawn(page, `rate ${second} /s`);
}

/** The table by load, on a page or in a report. */
async function toldByLoad(page) {
  const table = page.getByRole('region', { name: /^Figures by load/ });
  await table.waitFor();
  const rows = await table.locator('tbody tr').all();
  assert.equal(rows.length, 2, 'a row for each load');
  const told = [];
  for (const row of rows) {
    const cells = row.locator('td');
    told.push({
      load: await cells.nth(2).innerText(),
      operations: await figure(cells.nth(3)),
      qps: await figure(cells.nth(4)),
    });
  }
  assert.match(told[0].load, new RegExp(`^${first}\\b`));
  assert.match(told[1].load, new RegExp(`^${second}\\b`));
  assert.ok(told[1].qps > 1.5 * told[0].qps, `three times the load is not ${told[0].qps} and ${told[1].qps}`);
  const id = /runs\/([^/?]+)/.exec(page.url())?.[1];
  if (!id) return told;
  const { summary } = await (await page.request.get(new URL(`/api/runs/${id}`, page.url()).href)).json();
  // What ended in the drain is of no load's time: it is counted beside them, as in the throughput.
  assert.equal(
    told[0].operations + told[1].operations + summary.finished_late,
    summary.operations,
    'the loads, and what ended after them, are the run',
  );
  return told;
}

/** What the report of this run has beside what every report has. */
export async function reportsItsLoads(report) {
  await toldByLoad(report);
  await report.getByRole('list', { name: 'Marked moments' }).getByText('index created').waitFor();
  await drawn(report, 'index created');
  await drawn(report, `rate ${second} /s`);
}

/** A viewer sees the run with its mark and by load, and is offered nothing that would change it. */
export async function looksAtIt(page, base, id) {
  await page.goto(`${base}/runs/${id}`);
  const marks = page.getByRole('list', { name: 'Marked moments' });
  await marks.getByText('index created').waitFor();
  await toldByLoad(page);
  assert.equal(await marks.getByRole('button').count(), 0, 'a mark is not a viewer’s to change');
  for (const name of ['Mark', 'Run again', 'Change rate', 'Share'])
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, `${name} is offered to a viewer`);
  const forged = await page.request.post(`${base}/api/v1/runs/${id}/marks`, { data: { text: 'x' } });
  assert.equal(forged.status(), 403);
}
