// Explore on a real server: a run's chart, completion, an error, a heat map, a saved query.
import assert from 'node:assert/strict';
import { accessible } from './axe.mjs';

export async function exploresTheRun(page, base, run) {
  await page.getByRole('tab', { name: 'Overview' }).click();
  await page.getByRole('button', { name: 'More for Operations per second, by kind' }).click();
  await page.getByRole('menuitem', { name: 'Open in Explore' }).click();
  const result = page.getByRole('region', { name: 'Result' });
  await page.getByRole('heading', { name: 'Explore' }).waitFor();
  // The run may not be ingested yet: repeat until its series exist.
  const lookup = result.getByRole('button', { name: `${run} · POINT_LOOKUP` });
  for (let i = 0; i < 20 && !(await lookup.isVisible()); i++) {
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await lookup.waitFor({ timeout: 2_000 }).catch(() => {});
  }
  await lookup.waitFor();
  assert.match(page.url(), /runs=/);
  await result.getByRole('button', { name: 'Explain' }).click();
  await result.getByText('The expression was taken apart into 1 leaf').waitFor();
  await accessible(page, 'Explore');

  const editor = page.getByRole('textbox', { name: /^Query/ });
  await editor.fill('sum by (kin) (rate(loadstone_operations_total[5s])');
  await editor.press('Control+Enter');
  await page.getByRole('list', { name: 'Errors' }).getByText('line 1, column').waitFor();
  await editor.fill('');
  await editor.pressSequentially('loadstone_latency_s');
  const completions = page.getByRole('listbox', { name: 'Completions' });
  await completions
    .getByRole('option')
    .filter({ hasText: /^loadstone_latency_seconds/ })
    .click();
  await editor.press('End');
  await editor.pressSequentially('{kind="IN');
  await completions.getByRole('option').filter({ hasText: 'INSERT' }).click();
  assert.equal(await editor.inputValue(), 'loadstone_latency_seconds{kind="INSERT"');
  await editor.fill('sum by (kind) (rate(loadstone_latency_seconds{kind="INSERT"}[5s]))');
  await editor.press('Control+Enter');
  await result.getByRole('button', { name: 'Heat map', exact: true }).click();
  await result.getByText('observations per second in a cell').waitFor();
  await page.getByRole('button', { name: 'Table', exact: true }).click();
  await result.getByRole('cell', { name: 'INSERT' }).waitFor();

  await page.getByRole('button', { name: 'Save as…' }).click();
  await page.getByLabel('Name').fill('Inserts of the journey');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.waitForURL(/saved=Inserts/);
  await page.goto(`${base}/query`);
  await page.getByRole('region', { name: 'Saved queries' }).waitFor();
  assert.equal(await page.getByText('Inserts of the journey').count(), 0);
  await page.goto(`${base}/explore?saved=Inserts+of+the+journey`);
  await result.getByRole('cell', { name: 'INSERT' }).waitFor();

  // Another link while this one is open; a running query can be cancelled.
  await page.evaluate(() => history.pushState(null, '', '/explore?q=count%28loadstone_connections%29'));
  await page.waitForFunction(() => document.querySelector('textarea')?.value === 'count(loadstone_connections)');
  await page.getByRole('status').getByText('1 series').waitFor();
  let release;
  const released = new Promise((done) => (release = done));
  await page.route('**/query_events', async (route) => {
    await released;
    await route.continue().catch(() => {});
  });
  await page.getByRole('button', { name: 'Run', exact: true }).click();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.getByText('The query was cancelled.').waitFor();
  release();
  await page.unroute('**/query_events');

  // On a phone the result precedes the saved queries.
  const size = page.viewportSize();
  await page.setViewportSize({ width: 390, height: 844 });
  const top = async (of) => (await of.boundingBox()).y;
  const saved = page.getByRole('region', { name: 'Saved queries' });
  assert.ok((await top(result)) < (await top(saved)), 'saved queries stand above the answer on a phone');
  await page.setViewportSize(size);
}
