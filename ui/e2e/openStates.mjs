// Page states that need a click or a key, on the mock server; each is checked by shot.
import assert from 'node:assert/strict';
import { opensAbout } from './steps.mjs';

/** views: the menu, saving, and shared views. */
async function views({ page, open, shot, step }) {
  const menu = async () => {
    await page.getByRole('button', { name: 'Views', exact: true }).click();
    await page.getByRole('menu', { name: 'Views' }).getByText('Failed, slowest first').waitFor();
  };
  await step('the views of runs', async () => {
    await open('/history', 'index rebuild');
    await menu();
    await shot('the views of runs');
    await page.getByRole('menuitem', { name: 'Save this view' }).click();
    await page.getByLabel('Name of the view').fill('Failed, slowest first');
    await shot('a view to be saved');
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
    await menu();
    await page.getByRole('menuitem', { name: 'Share and delete views' }).click();
    await page.getByRole('dialog').getByText('grace@example.com').waitFor();
    await shot('the views that are shared');
    await page.keyboard.press('Escape');
  });
}

/** parameters of failed and slowest executions, with and without values. */
async function parameters({ page, open, shot, step, find, width, height }) {
  const shown = page.locator('.parameters');
  const begins = async () => {
    const { y } = await shown.boundingBox();
    assert.ok(y >= 0 && y < height - 120, `the parameters begin at ${y} of ${height}`);
  };
  await step('parameters of failed executions', async () => {
    await open(`/runs/${await find('orders under contention')}?tab=errors`, 'What failed, by statement');
    await page.getByRole('button', { name: 'Parameters of 23505 in insert' }).click();
    await shown.getByText('The values are stored but not shown.').waitFor();
    await shown.getByText('No space was left for 1,207 more executions').waitFor();
    await begins();
    await shot('parameters of failed executions');
    await shown.getByRole('button', { name: 'Show values' }).click();
    await shown.getByText('<b>Ann</b> Smith').first().waitFor();
    await shot('parameters of failed executions, with values');
  });
  await step('parameters of an execution', async () => {
    await open(`/runs/${await find('first run')}?tab=executions`, 'Single executions');
    await page
      .getByRole('button', { name: /^Show details of execution/ })
      .first()
      .click();
    await page.locator('.execution-details').getByText('4 executions with parameters.').waitFor();
    const { x, width: wide } = await page.locator('.execution-details').boundingBox();
    assert.ok(x >= 0 && x + wide <= width, `the details are from ${x} to ${x + wide} of ${width}`);
    await shot('parameters of an execution');
  });
  await step('parameters of slow executions', async () => {
    await open(`/runs/${await find('first run')}?tab=slowest`, 'Slowest of each statement');
    await page
      .getByRole('button', { name: /^Parameters of the slowest executions of/ })
      .first()
      .click();
    await shown.getByText('4 executions with parameters.').waitFor();
    await begins();
    await shot('parameters of slow executions');
  });
}

/** tables: a suspended table and a failed run are retried. */
async function tables({ page, base, open, shot, step }) {
  const again = async (path, button) => {
    await open(path, /no longer retries it/);
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByText(/no longer retries it/).waitFor({ state: 'detached' });
  };
  await step('tables that are tried again', async () => {
    await again('/table/cost%20by%20%22size%22', 'Resume');
    await shot('a failed table that was resumed');
    await open('/table/exported_executions', '1 run could not be ingested');
    await shot('a run that is left alone');
    await again('/table/exported_executions', 'Try again');
    await page.request.post(`${base}/mock/tables/fail`);
  });
}

/** editorStates: a replaced query, and a template with hidden characters. */
async function editorStates({ page, base, open, shot, step }) {
  await step('a query whose place another has taken', async () => {
    await open('/query', 'P95 by night');
    const editor = page.getByRole('textbox', { name: /^Query/ });
    await editor.fill('SELECT 42 AS mine');
    await page.getByRole('button', { name: /^P95 by night/ }).click();
    assert.match(await editor.inputValue(), /FROM run_summary/);
    await page.getByText('was not saved').waitFor();
    await shot('a query whose place another has taken');
    await page.getByRole('button', { name: 'Bring it back' }).click();
    assert.equal(await editor.inputValue(), 'SELECT 42 AS mine');
  });
  await step('a template with characters that nobody sees', async () => {
    await page.goto(`${base}/templates/new?as=yaml`);
    const yaml = page.getByRole('textbox', { name: /Template as YAML/ });
    await yaml.fill('name: first \u202etxt.exe\ntarget: {adapter: postgres, table_name: "or\u200bders"}\n');
    await page.getByText('U+202E').waitFor();
    assert.equal(await page.locator('.yaml-text .unseen').count(), 2);
    await shot('a template with characters that nobody sees');
    await page.getByRole('button', { name: 'Remove them', exact: true }).click();
    assert.match(await yaml.inputValue(), /^name: first txt\.exe\ntarget: .*"orders"/);
    await page.getByText('U+202E').waitFor({ state: 'detached' });
    await page.evaluate(() => sessionStorage.clear());
  });
}

/** baselines: a run without a baseline, as the baseline, compared with it, and over time. */
async function baselines({ page, open, shot, step, find }) {
  const against = page.getByRole('region', { name: 'Against the baseline' });
  await step('a run beside its baseline', async () => {
    await open(`/runs/${await find('orders under contention')}`, 'Latency heat map');
    await opensAbout(page);
    await against.getByText('This template has no baseline.').waitFor();
    await against.getByRole('button', { name: 'Make this the baseline' }).click();
    await against.getByText('compared with this run').waitFor();
    await shot('a run that is the baseline');
    await open(`/runs/${await find('checkout peak', 'COMPLETED')}`, 'Against the baseline');
    await against.getByRole('link', { name: 'Compare' }).waitFor();
    await shot('a run beside its baseline');
    await against.getByRole('link', { name: 'Drift over time' }).click();
    await page.locator('.drift-picture[role=img] .dot.baseline').waitFor();
    await page.getByText(/compared runs (is|are) worse than the baseline/).waitFor();
    await shot('drift over time');
    await open(`/runs/${await find('orders under contention')}`, 'compared with this run');
    await against.getByRole('button', { name: 'Remove baseline' }).click();
    await against.getByText('This template has no baseline.').waitFor();
  });
}

export async function opensStates(on) {
  await baselines(on);
  await views(on);
  await parameters(on);
  await tables(on);
  await editorStates(on);
}
