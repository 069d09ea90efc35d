// Derived tables on a real server: make one before the run, see the run in it, query it, suspend and resume it.
import assert from 'node:assert/strict';

const name = `runs of the "journey", näher`;

/** Puts SQL into the editor of the page, as a paste does. */
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
  // The word is put in place of the wrong one, and completed.
  const editor = page.getByRole('textbox', { name: /^Definition/ });
  await editor.fill('');
  await editor.pressSequentially('SELECT run_id, run_name, load_mode FROM roll');
  await page.getByRole('option').filter({ hasText: /^runs/ }).click();
  assert.match(await editor.inputValue(), /FROM rollup\.runs$/);
  await page.getByRole('region', { name: 'Preview' }).getByText('It reads runs').waitFor();
  await page.getByRole('button', { name: 'Make table' }).click();
  await page.getByRole('heading', { name }).waitFor();
  await page.getByText('Fresh', { exact: true }).first().waitFor({ timeout: 60_000 });
}

export async function seesTheRunInIt(page, base, run) {
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
