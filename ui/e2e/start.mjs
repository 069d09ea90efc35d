// First steps: connect, check, 20 seconds of load, explanation; and templates by question.
import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** takesFirstSteps follows the guided path and starts a template from the gallery. */
export async function takesFirstSteps(page, base) {
  await page.goto(`${base}/start`);
  await page.getByLabel('Connection', { exact: true }).selectOption('playground');
  await page.getByRole('button', { name: 'Create a sample table' }).click();
  await page.getByRole('button', { name: 'Check only' }).click();
  await page.getByRole('list', { name: 'Checks' }).waitFor({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Check and run' }).click();
  const means = page.getByRole('region', { name: 'Result', exact: true });
  await until(
    () => means.innerText(),
    (s) => /The run measured .* operations/.test(s) && /not the limit of the table/.test(s),
    'what the run means',
    90_000,
  );
  for (const chart of ['Throughput', 'Latency']) await means.getByRole('application', { name: chart }).waitFor();
  const run = (await means.getByRole('link', { name: 'Open the run' }).getAttribute('href')).split('/').at(-1);

  // The next question keeps the connection and the table.
  await means.getByRole('link', { name: 'Where is the limit?' }).click();
  await page.getByLabel('Objective: P95 under').waitFor();
  assert.equal(await page.getByLabel('Connection', { exact: true }).inputValue(), 'playground');
  assert.equal(await page.getByLabel('Table', { exact: true }).inputValue(), 'first_steps');
  await page.goto(`${base}/start?run=${run}`);

  // Its tables are listed, with search.
  await page.getByRole('button', { name: 'Read an existing table' }).click();
  await page.getByPlaceholder(/^Search \d+ tables$/).fill('first_st');
  await page.getByRole('radiogroup', { name: 'Tables' }).getByText('first_steps', { exact: true }).click();
  await means.getByRole('link', { name: 'Change its template' }).click();
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
  assert.equal(
    await page.getByLabel('Table', { exact: true }).inputValue(),
    'first_steps',
    'the example takes over the table of the last run',
  );
}
