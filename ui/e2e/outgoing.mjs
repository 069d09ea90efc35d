import assert from 'node:assert/strict';
import { until } from './steps.mjs';

/** Reads on the page what was sent to a receiver of remote-write, and asks the receiver whether it came. */
export async function seesWhatIsSent(page, base, receiver) {
  await page.goto(`${base}/nodes`);
  const panel = page.getByRole('region', { name: 'Sent elsewhere', exact: true });
  const row = panel.getByRole('row').filter({ hasText: receiver });
  const cells = await until(
    () => row.getByRole('cell').allInnerTexts(),
    (c) => c.length === 6 && Number(c[2].replaceAll(',', '')) > 100 && c[3].startsWith('0,'),
    'the samples of the journey’s run are sent',
  );
  assert.deepEqual([cells[0], cells[4], cells[5]], ['remote_write', '0', 'None']);
  const came = await (await fetch(receiver)).json();
  assert.ok(came.requests > 2 && came.bytes > 1000, `what came: ${JSON.stringify(came)}`);
}
