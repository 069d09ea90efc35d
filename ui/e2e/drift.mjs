// The baseline of a template on a real server: set, compared, drawn over time, removed.
import assert from 'node:assert/strict';
import { accessible } from './axe.mjs';
import { opensAbout } from './steps.mjs';

/** comparesWithABaseline makes the first steps' run the baseline, runs its template again, and compares. */
export async function comparesWithABaseline(page, base) {
  await page.goto(`${base}/history?search=first+steps&status=COMPLETED`);
  await page.locator('tbody a.name', { hasText: 'first steps' }).first().click();
  const first = await page.waitForURL(/\/runs\//).then(() => new URL(page.url()).pathname.split('/').at(-1));
  const against = page.getByRole('region', { name: 'Against the baseline' });
  await opensAbout(page);
  await against.getByText('This template has no baseline.').waitFor();
  await against.getByRole('button', { name: 'Make this the baseline' }).click();
  await against.getByText('compared with this run').waitFor();

  await page.getByRole('button', { name: 'Run again' }).click();
  await page.waitForURL((url) => /\/runs\//.test(url.pathname) && !url.pathname.includes(first));
  await against.getByRole('link', { name: 'Compare' }).waitFor({ timeout: 90_000 });
  await against
    .getByText(/^[+−±][\d.]+ %$/)
    .first()
    .waitFor();
  await against
    .getByText(/^\([+−±][\d.]+ to [+−±][\d.]+\)$/)
    .first()
    .waitFor();
  assert.equal(
    await against.getByRole('link', { name: 'Compare' }).getAttribute('href'),
    `/compare?runs=${first},${new URL(page.url()).pathname.split('/').at(-1)}`,
  );
  await against.getByRole('link', { name: 'Drift over time' }).click();

  const drift = page.getByRole('region', { name: 'Drift over time' });
  await drift.getByText(/^P95: .* 1 compared run (is|are)? ?.*worse than the baseline\.$/).waitFor();
  assert.equal(await drift.locator('.drift-picture[role=img] .dot').count(), 2, 'a point for each run');
  assert.equal(await drift.locator('.drift-picture[role=img] .dot.baseline').count(), 1);
  await drift.getByRole('button', { name: 'Throughput' }).click();
  await drift.getByText(/^Throughput: /).waitFor();
  assert.match(page.url(), /figure=qps/);
  await drift.getByText('The runs as a table').click();
  await accessible(page, 'drift over time');
  await drift
    .getByRole('row')
    .filter({ hasText: 'baseline' })
    .filter({ hasNotText: 'Compare' })
    .getByRole('link')
    .click();
  await page.waitForURL(`${base}/runs/${first}`);
  await against.getByRole('button', { name: 'Remove baseline' }).click();
  await against.getByText('This template has no baseline.').waitFor();
}
