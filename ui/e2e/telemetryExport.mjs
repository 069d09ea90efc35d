import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** exportsTelemetry compares the page's export counts with the remote-write receiver's. */
export async function exportsTelemetry(page, base, receiver) {
  await page.goto(`${base}/nodes`);
  const panel = page.getByRole('region', { name: 'Telemetry export', exact: true });
  const row = panel.getByRole('row').filter({ hasText: receiver });
  const cells = await until(
    () => row.getByRole('cell').allInnerTexts(),
    (c) => c.length === 6 && Number(c[2].replaceAll(',', '')) > 100 && c[3].startsWith('0,'),
    'the samples of the journey’s run are sent',
  );
  assert.deepEqual([cells[0], cells[4], cells[5]], ['remote_write', '0', 'None']);
  const received = await (await fetch(receiver)).json();
  assert.ok(received.requests > 2 && received.bytes > 1000, `what came: ${JSON.stringify(received)}`);
}
