// Parameters of failed and slow executions on a real server: masked, and shown on request, which is audited.
import assert from 'node:assert/strict';
import { accessible } from './axe.mjs';

const source = (name) => `name: ${name}
target: {connection: playground, adapter: postgres}
workload:
  plugin: sql
  params:
    statements:
      - id: divides
        sql: "SELECT length(:word::text) / :by::bigint"
        binds: [{name: by, values: [0, 7]}, {name: word, values: ["<b>Ann</b> Smith"]}]
  concurrent_connections: 2
  warmup_seconds: 0
  duration_seconds: 2
  binds: plain
`;

/** looksAtParameters runs a statement that fails for one value and reads the values. */
export async function looksAtParameters(page, base) {
  const started = await page.context().request.post(`${base}/api/runs`, {
    data: { source: source(`parameters ${Date.now()}`), start: true },
    headers: { origin: base },
  });
  assert.equal(started.status(), 201, await started.text());
  const { run_id: id } = await started.json();
  await page.goto(`${base}/runs/${id}`);
  await page.getByRole('tab', { name: /^Errors/ }).click({ timeout: 60_000 });
  await page.getByRole('button', { name: 'Parameters of 22012 in divides' }).click();
  const shown = page.locator('.parameters');
  await shown.getByText('The values are stored but not shown.').waitFor();
  await shown.getByText('text(16)').first().waitFor();
  assert.equal(await shown.getByText('Smith').count(), 0, 'a value is shown unasked');
  await shown.getByRole('button', { name: 'Show values' }).click();
  await shown.getByText('<b>Ann</b> Smith', { exact: true }).first().waitFor();
  assert.equal(await shown.getByText('text(16)').count(), 0);
  await accessible(page, 'parameters of failed executions');
  const trail = await (await page.context().request.get(`${base}/api/audit?action=binds.show`)).text();
  assert.ok(trail.includes(id), 'the look is not in the audit log');
  await shown.getByRole('button', { name: 'Hide values' }).click();
  await shown.getByText('text(16)').first().waitFor();
  await page.getByRole('tab', { name: 'Slowest' }).click();
  await page.getByRole('button', { name: 'Parameters of the slowest executions of divides' }).click();
  await page.locator('.parameters').getByText('20 executions with parameters.').waitFor();
}
