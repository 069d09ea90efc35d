import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { once } from 'node:events';
import { until } from './steps.mjs';

/** sendsNotifications creates, tests, narrows and deletes a webhook with a real receiver. */
export async function sendsNotifications(page, base) {
  const received = [];
  const receiver = createServer((req, res) => {
    let body = '';
    req.on('data', (part) => (body += part));
    req.on('end', () => {
      received.push({ headers: req.headers, path: req.url, body: JSON.parse(body) });
      res.end();
    });
  });
  receiver.listen(0, '127.0.0.1');
  await once(receiver, 'listening');
  try {
    const name = `hook ${Date.now()}`;
    await page.goto(`${base}/settings/notifications`);
    const panel = page.getByRole('region', { name: 'Notifications' });
    await panel.getByText('No notifications yet').waitFor();
    await panel.getByRole('button', { name: 'New notification' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name', { exact: true }).fill(name);
    await dialog.getByLabel('Address', { exact: true }).fill('http://169.254.169.254/latest');
    await dialog.getByLabel('Secret', { exact: true }).fill('four words do well');
    await dialog.getByRole('button', { name: 'Save notification' }).click();
    await dialog.locator('.field', { hasText: 'Address' }).getByText('connections to it are refused').waitFor();
    await dialog.getByLabel('Address', { exact: true }).fill(`http://127.0.0.1:${receiver.address().port}/the-path`);
    await dialog.getByRole('checkbox', { name: /^Finished/ }).check();
    await dialog.getByLabel('With tags').fill('team');
    await dialog.getByRole('button', { name: 'Save notification' }).click();
    await dialog.getByText('Line 1 is not a tag').waitFor();
    await dialog.getByLabel('With tags').fill('team:search');
    await dialog.getByRole('button', { name: 'Save notification' }).click();
    await dialog.waitFor({ state: 'detached' });
    const row = panel.getByRole('row').filter({ has: page.getByRole('button', { name: `Change ${name}` }) });
    await row.getByText('signed').waitFor();
    await row.getByText('all runs with team:search').waitFor();
    assert.doesNotMatch(await panel.innerText(), /the-path/, 'the path of an address can be a secret');

    await row.getByRole('button', { name: `Send a test to ${name}` }).click();
    await row.getByText('Delivered').waitFor();
    assert.equal(received.length, 1);
    assert.equal(received[0].path, '/the-path');
    assert.equal(received[0].body.event, 'test');
    assert.match(received[0].headers['x-loadstone-signature'], /^sha256=[0-9a-f]{64}$/);

    await row.getByRole('button', { name: `Change ${name}` }).click();
    await dialog.getByRole('checkbox', { name: 'Stop signing' }).check();
    await dialog.getByRole('checkbox', { name: /^Finished/ }).uncheck();
    await dialog.getByRole('button', { name: 'Save notification' }).click();
    await dialog.waitFor({ state: 'detached' });
    await row.getByText('Regressed, Failed').waitFor();
    await row.getByRole('button', { name: `Send a test to ${name}` }).click();
    await until(
      async () => received.length,
      (n) => n === 2,
      'the second test at the receiver',
    );
    assert.equal(received[1].path, '/the-path', 'the address stays when it is left empty');
    assert.equal(received[1].headers['x-loadstone-signature'], undefined);
    await panel
      .getByRole('group', { name: /^Deliveries/ })
      .getByRole('row')
      .nth(2)
      .waitFor();

    await row.getByRole('button', { name: `Delete ${name}` }).click();
    await dialog.getByRole('button', { name: 'Delete notification' }).click();
    await row.waitFor({ state: 'detached' });
  } finally {
    receiver.close();
    receiver.closeAllConnections();
  }
}
