import assert from 'node:assert/strict';
import { pathToFileURL } from 'node:url';
import { accessible } from './axe.mjs';
import { complaints, until, opensAbout } from './steps.mjs';

/** openReport opens a report and records requests it must not make. */
async function openReport(browser, address, name, prepare) {
  const context = await browser.newContext({
    viewport: { width: 1280, height: 900 },
    offline: address.startsWith('file:'),
  });
  await prepare(context);
  const page = await context.newPage();
  const wrong = complaints(page);
  const requests = [];
  page.on('request', (r) => requests.push(r.url()));
  await page.goto(address);
  await page.getByRole('heading', { name, level: 1 }).waitFor();
  return { context, page, wrong, requests };
}

/**
 * sharesTheReport writes a note, opens the downloaded report offline, shares it by link, and revokes that. prepare gets
 * each reader's context, and reads their page.
 */
export async function sharesTheReport(page, browser, base, prepare, reads) {
  const name = await page.getByRole('heading', { level: 1 }).innerText();
  const more = page.getByRole('button', { name: 'More actions for this run' });
  await more.click();
  await page.getByRole('menuitem', { name: 'Note and tags' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Note', { exact: true }).fill('<img src=x onerror=alert(1)> with the index');
  await dialog.getByLabel(/^Tags/).fill('ticket PERF-1');
  await dialog.getByText('Line 1 is not a tag').waitFor();
  await dialog.getByLabel(/^Tags/).fill('ticket:PERF-1');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await opensAbout(page);
  await page.getByRole('region', { name: 'Note' }).getByText('with the index').waitFor();
  await page.getByRole('link', { name: 'ticket: PERF-1' }).waitFor();

  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Report', exact: true }).click(),
  ]);
  assert.match(download.suggestedFilename(), /-report\.html$/);
  const file = `${await download.path()}.html`;
  await download.saveAs(file);
  const report = await openReport(browser, pathToFileURL(file).href, name, prepare);
  try {
    await report.page.getByText('with the index').waitFor();
    assert.equal(await report.page.locator('img').count(), 0, 'a note is no HTML');
    assert.ok((await report.page.locator('.chart canvas').count()) >= 4, 'charts');
    await until(
      () => report.page.locator('.legend td.num').first().innerText(),
      (s) => /\d/.test(s),
      'figures in the legend',
    );
    await report.page.getByText('Everything is accounted for').waitFor();
    await reads(report.page);
    // The charts work: a curve is hidden and shown again, and one is saved.
    const series = report.page.locator('.legend button').first();
    assert.equal(await series.getAttribute('aria-pressed'), 'true');
    await report.page.getByRole('button', { name: /^More for Operations per second/ }).click();
    assert.equal(await report.page.getByRole('menuitem', { name: 'Open in Explore' }).count(), 0);
    const [csv] = await Promise.all([
      report.page.waitForEvent('download'),
      report.page.getByRole('menuitem', { name: 'Save as CSV' }).click(),
    ]);
    assert.match(csv.suggestedFilename(), /\.csv$/);
    for (const colorScheme of ['light', 'dark']) {
      await report.page.emulateMedia({ colorScheme });
      await accessible(report.page, `the report, ${colorScheme}`);
    }
    await report.page.setViewportSize({ width: 390, height: 844 });
    await accessible(report.page, 'the report on a phone');
    assert.deepEqual(report.wrong, []);
    assert.deepEqual(
      report.requests.filter((u) => !u.startsWith('file:') && !u.startsWith('blob:') && !u.startsWith('data:')),
      [],
      'a report asks nobody',
    );
  } finally {
    await report.context.close();
  }

  await more.click();
  await page.getByRole('menuitem', { name: 'Share the report' }).click();
  await dialog.getByLabel('Valid for').selectOption({ label: '1 day' });
  await dialog.getByRole('button', { name: 'Make link' }).click();
  const link = (await dialog.locator('pre.code').innerText()).trim();
  await dialog.getByRole('button', { name: 'Done' }).click();
  const stranger = await openReport(browser, link, name, prepare);
  try {
    await reads(stranger.page);
    await stranger.page.getByText('Everything is accounted for').waitFor();
    assert.equal((await stranger.page.request.get(`${base}/api/runs`)).status(), 401, 'a link opens nothing else');
    await page.getByRole('tab', { name: 'Export' }).click();
    const links = page.getByRole('region', { name: 'Links to reports' });
    await links.getByText('Active').waitFor();
    await links.getByRole('button', { name: /^End the link/ }).click();
    await dialog.getByRole('button', { name: 'Revoke link' }).click();
    await links.getByText('No link yet').waitFor();
    await stranger.page.reload();
    await stranger.page.getByRole('heading', { name: 'This link leads nowhere' }).waitFor();
  } finally {
    await stranger.context.close();
  }
}
