// First steps: connect, check, 20 seconds of load, explanation; and templates by question.
import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** takesFirstSteps follows the guided path and starts a template from the gallery. */
export async function takesFirstSteps(page, base) {
  await page.goto(`${base}/start`);
  await page.getByLabel('Connection', { exact: true }).selectOption('playground');
  const run = page.getByRole('button', { name: 'Run it' });
  assert.ok(await run.isDisabled(), 'nothing runs before it was looked at');
  await page.getByRole('button', { name: 'Check it, without load' }).click();
  await page.getByRole('list', { name: 'Checks' }).waitFor({ timeout: 60_000 });
  await run.click();
  const means = page.getByRole('region', { name: 'What it means' });
  await until(
    () => means.innerText(),
    (s) => /operations were measured/.test(s) && /not the most that the table can take/.test(s),
    'what the run means',
    90_000,
  );
  await means.getByRole('link', { name: 'change it' }).click();
  await until(
    () => page.getByLabel('Name', { exact: true }).inputValue(),
    (s) => s.startsWith('first steps: playground'),
    'the template that the run has left',
  );
  await page.goto(`${base}/templates/gallery`);
  await page.getByRole('link', { name: /How many lookups/ }).click();
  await until(
    () => page.getByLabel('Name', { exact: true }).inputValue(),
    (s) => s === 'how many lookups',
    'the example in the form',
  );
}
