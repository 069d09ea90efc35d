// Own SQL: parameters are detected, generators show samples, and trials run.
import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** triesAStatement writes a statement, sees samples, tries it, and restores it after a mistake. */
export async function triesAStatement(page, base) {
  await page.goto(`${base}/templates/new`);
  await page.getByLabel('Plugin', { exact: true }).selectOption('sql');
  await page.getByRole('button', { name: 'Add statement' }).click();
  const text = page.getByRole('textbox', { name: /^SQL of statement_1/ });
  await text.fill("SELECT relname, ':no' FROM pg_class WHERE oid > $1 LIMIT 3");
  await page.getByRole('button', { name: 'Write $1 as :p1' }).click();
  assert.match(await text.inputValue(), /oid > :p1 LIMIT 3/);
  await page.getByLabel('From of :p1').fill('7');
  await page.getByLabel('To of :p1').fill('7');
  await until(
    () => page.getByLabel('Samples of :p1').innerText(),
    (s) => /^7\b/.test(s),
    'the samples of the generator',
    60_000,
  );
  await page.getByRole('button', { name: 'Try it' }).click();
  const tried = page.locator('.tried');
  await tried.getByText('3 rows').waitFor({ timeout: 60_000 });
  assert.match(await page.getByLabel("The database's plan").innerText(), /pg_class/);
  const right = await text.inputValue();
  await text.fill('SELECT nothing_like_it FROM pg_class');
  await page.getByRole('button', { name: 'Try it' }).click();
  await until(
    () => tried.innerText(),
    (s) => s.includes('nothing_like_it') && !s.includes('3 rows'),
    'what the database refuses',
  );
  await text.fill(right);
  // A removed parameter's settings return with it.
  assert.equal(await page.getByLabel('From of :p1').inputValue(), '7');
  await page.getByRole('button', { name: 'Try it' }).click();
  await tried.getByText('3 rows').waitFor();
}
