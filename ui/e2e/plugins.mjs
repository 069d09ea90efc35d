// A plugin author's journey on a real server.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { accessible } from './axe.mjs';
import { complaints, stepper } from './steps.mjs';

/** pluginJourney uploads the example plugin, uses it in a run, and deletes it. The page is signed in. */
export async function pluginJourney(t, page, base, file) {
  page.setDefaultTimeout(20_000);
  const wrong = complaints(page);
  const step = stepper(t, page);
  const name = `counters ${new Date().toISOString().slice(0, 19)}`;
  const choose = page.locator('input[type=file]');
  const detail = page.getByRole('region', { name: 'counters@1.0.0' });

  await step('says why a file is refused', async () => {
    await page.goto(`${base}/plugins`);
    await page.getByText('Drop a plugin here').waitFor();
    const wasm = await readFile(file);
    await choose.setInputFiles({
      name: 'half.wasm',
      mimeType: 'application/wasm',
      buffer: wasm.subarray(0, wasm.length / 2),
    });
    await page.getByText('half.wasm was refused.').waitFor();
    await page
      .locator('.verdict-sentence', { hasText: 'The file is not a plugin that this version accepts' })
      .waitFor();
  });

  await step('uploads the plugin, which is stored disabled', async () => {
    await choose.setInputFiles(file);
    await page.getByText('counters 1.0.0 passed quarantine and is stored, disabled.').waitFor({ timeout: 60_000 });
    await detail.getByText('Disabled').waitFor();
  });

  await step('shows what it declares', async () => {
    await page.locator('.statement').first().waitFor();
    assert.ok((await page.locator('.statement').count()) >= 2, 'its statements');
    await page.locator('.try-params .field').first().waitFor();
    await page.getByText('wasi_snapshot_preview1.', { exact: false }).first().waitFor();
    await accessible(page, 'an uploaded plugin');
  });

  await step('is not offered to templates before it is enabled', async () => {
    await page.goto(`${base}/templates/new`);
    await page.getByLabel('Plugin', { exact: true }).locator('option[value=mix]').waitFor({ state: 'attached' });
    assert.equal(await page.getByLabel('Plugin', { exact: true }).locator('option[value=counters]').count(), 0);
  });

  await step('is enabled by an admin', async () => {
    await page.goto(`${base}/plugins?plugin=counters`);
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Enable plugin' }).click();
    await detail.getByText('Enabled', { exact: true }).waitFor();
  });

  await step('is used in a template', async () => {
    await page.getByRole('link', { name: 'Templates' }).first().click();
    await page.getByRole('link', { name: 'New template' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('Plugin', { exact: true }).selectOption('counters');
    await page.getByLabel('Table', { exact: true }).fill('journey_counters');
    await page.getByLabel('Rows', { exact: true }).fill('100');
    await page.getByLabel('Connections', { exact: true }).fill('4');
    await page.getByRole('textbox', { name: 'Duration' }).fill('4');
    await page.getByRole('textbox', { name: 'Warm-up' }).fill('1');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.waitForURL(/\/templates\/(?!new)/);
  });

  await step('runs', async () => {
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/runs\//);
    await page.getByRole('tab', { name: 'Accounting' }).waitFor({ timeout: 90_000 });
    await page.getByRole('tab', { name: 'Environment' }).click();
    await page.getByText('counters', { exact: false }).first().waitFor();
    await page.getByRole('tab', { name: 'Accounting' }).click();
    await page.getByText('Everything is accounted for').waitFor();
  });

  const remove = async () => {
    await page.goto(`${base}/plugins?plugin=counters`);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete plugin' }).click();
  };

  await step('is not deleted while the template names it', async () => {
    await remove();
    await page.getByRole('dialog').getByText(`A template uses the plugin counters@1.0.0: "${name}".`).waitFor();
    await page.getByRole('dialog').getByRole('button', { name: 'Keep' }).click();
    await detail.getByRole('link', { name }).click();
    await page.waitForURL(/\/templates\//);
  });

  await step('is deleted when nothing uses it', async () => {
    const id = new URL(page.url()).pathname.split('/').at(-1);
    const gone = await page.request.delete(`${base}/api/templates/${id}`, {
      headers: { 'Sec-Fetch-Site': 'same-origin' },
    });
    assert.equal(gone.status(), 204);
    await remove();
    await page.getByText('counters@1.0.0 was deleted.').waitFor();
    await page.getByRole('button', { name: 'mix 1.0.0' }).waitFor();
    assert.equal(await page.getByRole('button', { name: 'counters 1.0.0' }).count(), 0);
  });

  assert.deepEqual(wrong, [], 'the browser must have nothing to complain about');
}
