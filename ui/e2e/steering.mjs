// A user's path from the first link to a shared result: guided steps, own SQL, a run that is marked and changed, its
// result by load, the offline report, a share link, a viewer.
import assert from 'node:assert/strict';
import { until, opensAbout } from './steps.mjs';

/** readsCanvases records what charts draw, which no other API shows. */
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

/** drawn waits until a chart has drawn a text. */
const drawn = (page, text) =>
  until(
    () => page.evaluate(() => [...globalThis.drawnTexts]),
    (all) => all.includes(text),
    `“${text}” in a chart`,
  );

const first = 100;
const second = 300;

/** runsItsStatement makes a template of the tried statement and starts it at a rate. */
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

/** marksAndSteers sets a mark and changes the rate; both appear in the charts at once. */
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

/** ofAllLoads: the latency legend says that its totals mix several loads. */
const ofAllLoads = (page) =>
  page
    .locator('.chart', { has: page.getByRole('application', { name: 'Latency percentiles' }) })
    .getByRole('columnheader', { name: 'all loads' })
    .waitFor();

const figure = async (cell) =>
  Number((await cell.locator('.quantity').getAttribute('title')).replaceAll(',', '').split(' ')[0]);

/** readsFiguresByLoad checks that the figures by load add up to the total. */
export async function readsFiguresByLoad(page) {
  await page.getByRole('tab', { name: 'Accounting' }).waitFor({ timeout: 60_000 });
  await loadTable(page);
  await page.locator('.tile-note', { hasText: 'over 2 loads, listed below' }).waitFor();
  await ofAllLoads(page);
  await drawn(page, 'index created');
  await drawn(page, `rate ${second} /s`);
}

/** loadTable reads the table by load, on a page or in a report. */
async function loadTable(page) {
  if (await page.locator('.about-run').count()) await opensAbout(page);
  const table = page.getByRole('region', { name: /^Figures by load/ });
  await table.waitFor();
  const rows = await table.locator('tbody tr').all();
  assert.equal(rows.length, 2, 'a row for each load');
  const loads = [];
  for (const row of rows) {
    const cells = row.locator('td');
    loads.push({
      load: await cells.nth(2).innerText(),
      operations: await figure(cells.nth(3)),
      qps: await figure(cells.nth(4)),
    });
  }
  assert.match(loads[0].load, new RegExp(`^${first}\\b`));
  assert.match(loads[1].load, new RegExp(`^${second}\\b`));
  assert.ok(loads[1].qps > 1.5 * loads[0].qps, `three times the load is not ${loads[0].qps} and ${loads[1].qps}`);
  const id = /runs\/([^/?]+)/.exec(page.url())?.[1];
  if (!id) return loads;
  const { summary } = await (await page.request.get(new URL(`/api/runs/${id}`, page.url()).href)).json();
  // Operations that ended in the drain belong to no load: they are counted separately, as in the throughput.
  assert.equal(
    loads[0].operations + loads[1].operations + summary.finished_late,
    summary.operations,
    'the loads, and what ended after them, are the run',
  );
  return loads;
}

/** reportsItsLoads checks what only this run's report has. */
export async function reportsItsLoads(report) {
  await loadTable(report);
  await report.getByRole('list', { name: 'Marked moments' }).getByText('index created').waitFor();
  await drawn(report, 'index created');
  await drawn(report, `rate ${second} /s`);
}

/** viewerSeesTheRun checks a viewer's page: marks and loads, without actions. */
export async function viewerSeesTheRun(page, base, id) {
  await page.goto(`${base}/runs/${id}`);
  const marks = page.getByRole('list', { name: 'Marked moments' });
  await marks.getByText('index created').waitFor();
  await loadTable(page);
  assert.equal(await marks.getByRole('button').count(), 0, 'a mark is not a viewer’s to change');
  for (const name of ['Mark', 'Run again', 'Change rate', 'Share'])
    assert.equal(await page.getByRole('button', { name, exact: true }).count(), 0, `${name} is offered to a viewer`);
  const forged = await page.request.post(`${base}/api/v1/runs/${id}/marks`, { data: { text: 'x' } });
  assert.equal(forged.status(), 403);
}
