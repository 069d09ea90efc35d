// Derived tables on a real server: create one before a run, find the run in it, query, suspend and resume it.
import assert from 'node:assert/strict';
import { until } from './steps.mjs';

const name = `runs of the "journey", näher`;

/** write pastes SQL into the editor. */
async function write(page, sql) {
  await page.getByRole('textbox', { name: /^(Definition|Query)/ }).fill(sql);
}

export async function makesATable(page, base) {
  await page.goto(`${base}/tables`);
  await page.getByRole('link', { name: 'New table' }).click();
  await page.getByLabel('Name').fill(name);
  await page.getByRole('spinbutton', { name: 'Target lag' }).fill('1');
  await write(page, 'SELECT run_id, nobody,\n  run_name FROM rollup.runs');
  await page.getByText('column "nobody" does not exist').waitFor();
  await page.getByText('line 1, column 16').waitFor();
  // The word replaces the wrong one and is completed.
  const editor = page.getByRole('textbox', { name: /^Definition/ });
  await editor.fill('');
  await editor.pressSequentially('SELECT run_id, run_name, load_mode FROM roll');
  await page.getByRole('option').filter({ hasText: /^runs/ }).click();
  assert.match(await editor.inputValue(), /FROM rollup\.runs$/);
  await page.getByRole('region', { name: 'Preview' }).getByText('It reads runs').waitFor();
  await page.getByRole('button', { name: 'Create table' }).click();
  await page.getByRole('heading', { name }).waitFor();
  await page.getByText('Fresh', { exact: true }).first().waitFor({ timeout: 60_000 });
}

export async function listsRefreshWorkers(page, base) {
  await page.goto(`${base}/tables`);
  const workers = page.getByRole('region', { name: 'Workers', exact: true });
  await workers.getByRole('heading', { name: 'Refresh workers' }).waitFor();
  const rows = workers.locator('tbody tr');
  assert.equal(await rows.count(), 1, 'the server alone refreshes: the node was given no database');
  assert.match(await rows.innerText(), /server .+\s+tables and runs, 2 at a time\s+(nothing|\S)/);
  await reportsNoWorker(page, false);

  // Without workers the page shows the notice, so its absence above means something.
  await page.route('**/api/v1/tables', async (route) => {
    const response = await route.fetch();
    const list = await response.json();
    await route.fulfill({ response, json: { ...list, workers: [], nobody: 'Nobody takes finished runs in. Cure.' } });
  });
  await page.reload();
  await reportsNoWorker(page, true);
  await page.unroute('**/api/v1/tables');
  await page.reload();
  await workers.getByRole('heading', { name: 'Refresh workers' }).waitFor();
  await reportsNoWorker(page, false);
}

/** reportsNoWorker reports whether the page says that nothing ingests or refreshes. */
async function reportsNoWorker(page, says) {
  await page.getByRole('region', { name: 'Dependencies' }).waitFor();
  const notice = page.getByRole('main').getByText(/^Nobody (takes|refreshes)\b/);
  await until(
    () => notice.count(),
    (n) => n === (says ? 1 : 0),
    says ? 'word that nobody takes runs in' : 'a page without a word that nobody refreshes',
    5_000,
  );
}

/** isEditedByTwo edits a definition twice at once; the second user is told and loses nothing. */
export async function isEditedByTwo(page, other, base) {
  const address = `${base}/table/${encodeURIComponent(name)}/edit`;
  for (const p of [page, other]) {
    await p.goto(address);
    await p.getByLabel('Partition key').waitFor();
    await p.getByRole('region', { name: 'Preview' }).getByText('It reads runs').waitFor();
  }
  const parts = page.getByLabel('Parts of a refresh');
  assert.ok(await parts.isDisabled(), 'a table whose rows depend on anything is not divided');
  await page.getByLabel('Partition key').selectOption('RUN');
  await parts.fill('4');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('as few rows as possible, in 4 parts').waitFor();

  await other.getByLabel('Description').fill('what the other one says');
  await other.getByRole('button', { name: 'Save', exact: true }).click();
  await other.getByText(/was changed by admin at .*, after you had opened it/).waitFor();
  await other.getByText('Changed: the partition key, the number of parts.').waitFor();
  assert.equal(await other.getByLabel('Description').inputValue(), 'what the other one says');
  await other.getByRole('button', { name: /Load the newest version/ }).click();
  await until(
    () => other.getByLabel('Parts of a refresh').inputValue(),
    (s) => s === '4',
    'what the first one saved',
  );
  await other.getByLabel('Description').fill('what the other one says');
  await other.getByRole('button', { name: 'Save', exact: true }).click();
  await other.getByText('changed by admin').waitFor();
  await other.getByText('what the other one says').waitFor();
  await other.locator('dd').getByText('in 4 parts').waitFor();
}

/** sharesAQuery checks that a link shows query and chart, and does not run it. */
export async function sharesAQuery(page, other, base) {
  await page.goto(`${base}/query`);
  await write(page, 'SELECT second, operations FROM run_seconds ORDER BY 1');
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  const result = page.getByRole('region', { name: 'Result' });
  await result
    .getByText(/\d rows?/)
    .first()
    .waitFor();
  await page.getByRole('button', { name: 'Chart', exact: true }).click();
  await result.getByText('operations by second').waitFor();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write'], { origin: base });
  await page.getByRole('button', { name: 'Link', exact: true }).click();
  await page.getByText('Link copied').waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(link, page.url());

  const requests = [];
  other.on('request', (r) => new URL(r.url()).pathname === '/api/query' && requests.push(r.url()));
  await other.goto(link);
  await other.getByText('This query came with the link').waitFor();
  assert.equal(
    await other.getByRole('textbox', { name: /^Query/ }).inputValue(),
    'SELECT second, operations FROM run_seconds ORDER BY 1',
  );
  assert.deepEqual(requests, [], 'nothing is asked before its reader asks');
  await other.getByRole('button', { name: 'Run', exact: true }).click();
  await other.getByRole('region', { name: 'Result' }).getByText('operations by second').waitFor();
}

export async function findsTheRunInTheTable(page, base, run) {
  await page.goto(`${base}/tables`);
  await page.getByRole('link', { name }).first().click();
  const rows = page.getByRole('region', { name: 'Rows', exact: true });
  await rows.getByText(run).waitFor({ timeout: 60_000 });
  await page.getByRole('region', { name: 'History' }).getByText('Rows written').waitFor();

  await page.getByRole('link', { name: 'Query', exact: true }).click();
  await page.getByText('This query came with the link').waitFor();
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('region', { name: 'Result' }).getByText(run).waitFor();
  await page.getByRole('button', { name: 'Chart', exact: true }).click();
  await page.getByText('A chart needs a column of numbers').waitFor();
}

export async function suspendsAndResumes(page, base) {
  await page.goto(`${base}/table/${encodeURIComponent(name)}`);
  await page.getByRole('button', { name: 'Suspend' }).click();
  await page.getByText('Suspended', { exact: true }).first().waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByText('Fresh', { exact: true }).first().waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'More for' }).click();
  await page.getByRole('menuitem', { name: 'Drop' }).click();
  await page.getByRole('button', { name: 'Drop table' }).click();
  await page.getByRole('heading', { name: 'Tables', exact: true }).waitFor();
  assert.equal(await page.getByRole('link', { name }).count(), 0);
}
