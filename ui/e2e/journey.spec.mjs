// The main jobs on a real server: from the first link to a shared result; a template in the form, started, watched,
// reloaded, stopped and read.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { after, before, test } from 'node:test';
import { launch } from './browser.mjs';
import { isSavedByTwo, keepsItsMessages } from './editor.mjs';
import { exploresTheRun } from './explore.mjs';
import { comparesWithABaseline } from './drift.mjs';
import { sharesTheReport } from './shareReport.mjs';
import { signsOutCleanly } from './signOut.mjs';
import { sendsNotifications } from './notifications.mjs';
import { exportsTelemetry } from './telemetryExport.mjs';
import { looksAtParameters } from './parameters.mjs';
import { pluginJourney } from './plugins.mjs';
import { editsPrices } from './prices.mjs';
import {
  marksAndSteers,
  readsCanvases,
  readsFiguresByLoad,
  reportsItsLoads,
  runsItsStatement,
  viewerSeesTheRun,
} from './steering.mjs';
import { takesFirstSteps } from './start.mjs';
import { triesAStatement } from './statements.mjs';
import {
  findsTheRunInTheTable,
  isEditedByTwo,
  listsRefreshWorkers,
  makesATable,
  sharesAQuery,
  suspendsAndResumes,
} from './tables.mjs';
import { stopsARunByARule, stopsARunByItsTemplate } from './streams.mjs';
import { invitesAViewer } from './users.mjs';
import { complaints, exactTile, stepper, tile, until } from './steps.mjs';

const base = process.env.BASE_URL;
const token = process.env.SIGNIN_TOKEN;
let browser;
let signedIn; // the sign-in link works once: the next journey goes on with its session

before(async () => {
  browser = await launch();
});
after(() => browser?.close());

/** secondsInChart downloads a chart's CSV and counts its seconds. */
async function secondsInChart(page) {
  await page.getByRole('button', { name: 'More for Operations per second, by kind' }).click();
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('menuitem', { name: 'Save as CSV' }).click(),
  ]);
  const text = await readFile(await download.path(), 'utf8');
  return text.trim().split('\r\n').length - 1;
}

/** A throwaway certificate to paste. */
const ca = `-----BEGIN CERTIFICATE-----
MIIBgTCCASegAwIBAgIUTOnM4isXSYugc9MmmygSHTRELuMwCgYIKoZIzj0EAwIw
FTETMBEGA1UEAwwKRXhhbXBsZSBDQTAgFw0yNjExMjIwODMxNDhaGA8yMTI2MTAy
OTA4MzE0OFowFTETMBEGA1UEAwwKRXhhbXBsZSBDQTBZMBMGByqGSM49AgEGCCqG
SM49AwEHA0IABIJ8ldSgiR23cYCn/quzFLHraZVepSQ+vHw4QyiZ7pkhIMLeoJ2n
tUJ7w3VdIkjxY1PMgABiMRORHPcyFiRi/pejUzBRMB0GA1UdDgQWBBTyv6BDenj4
hemvm8oKrOqKlLZ4GzAfBgNVHSMEGDAWgBTyv6BDenj4hemvm8oKrOqKlLZ4GzAP
BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQDe8xQcbbgS5powC16A
nTmAg0ub4fGCRGO3Go/fnnDxvgIgSQ3a4bkUPg96I2LIP0oVG/2ra6DXKI172+8j
Y6RySnU=
-----END CERTIFICATE-----
`;

test('from the first link to a result in other hands', { timeout: 300_000 }, async (t) => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  await readsCanvases(context);
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const wrong = complaints(page);
  const step = stepper(t, page);
  await step('signs in by the one-time link', async () => {
    await page.goto(`${base}/signin?token=${encodeURIComponent(token)}`);
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    assert.ok(!page.url().includes('token='), 'the token must leave the address bar');
  });
  await step('takes the first steps', () => takesFirstSteps(page, base));
  await step('writes own SQL and tries it', () => triesAStatement(page, base));
  await step('runs it at a rate', () => runsItsStatement(page, `own SQL ${Date.now()}`));
  const id = new URL(page.url()).pathname.split('/')[2];
  await step('marks a moment of the run, and changes its rate', () => marksAndSteers(page));
  await step('reads the result by load', () => readsFiguresByLoad(page));
  await step('notes, reports and shares the run', () =>
    sharesTheReport(page, browser, base, readsCanvases, reportsItsLoads),
  );
  await step('invites a viewer, who looks and changes nothing', () =>
    invitesAViewer(page, browser, base, (own) => viewerSeesTheRun(own, base, id)),
  );
  assert.deepEqual(wrong, [], 'the browser must have nothing to complain about');
  signedIn = await context.storageState();
  await context.close();
});

test('create, start, watch, reload, stop, read the result', { timeout: 600_000 }, async (t) => {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState: signedIn });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const wrong = complaints(page);
  const sockets = [];
  let cut = false;
  await page.routeWebSocket(/\/ws\/runs\//, (ws) => {
    if (cut) return void ws.close({ code: 4001, reason: 'cut by the test' });
    ws.connectToServer();
    sockets.push(ws);
  });
  const step = stepper(t, page);
  const name = `journey ${new Date().toISOString().slice(0, 19)}`;

  await step('takes pasted certificates, says which is wrong, and shows them as saved', async () => {
    await page.goto(`${base}/connections?new=postgres`);
    const form = page.getByRole('dialog');
    const own = `tls ${Date.now()}`;
    await form.getByLabel('Name', { exact: true }).fill(own);
    await form.getByLabel('Host or socket folder').fill('db.invalid');
    await form.getByLabel('Database', { exact: true }).fill('shop');
    await form.getByLabel('User', { exact: true }).fill('bench');
    await form.getByLabel('TLS').selectOption('verify-full');
    await form.getByText('Certificates', { exact: true }).click();
    const pasted = form.getByRole('textbox', { name: /^CA certificate/ });
    await pasted.fill('-----BEGIN CERTIFICATE-----\nxx\n-----END CERTIFICATE-----');
    await form.getByRole('button', { name: 'Save connection' }).click();
    const field = form.locator('.field', { has: page.getByRole('textbox', { name: /^CA certificate/ }) });
    await until(
      () => field.locator('.problem').innerText(),
      (text) => text.includes('no certificate'),
      'the complaint under its field',
    );
    await pasted.fill(ca);
    await form.getByRole('button', { name: 'Save connection' }).click();
    await form.waitFor({ state: 'hidden' });
    const card = page.getByRole('region', { name: own });
    assert.match(await card.locator('.dsn').innerText(), /sslrootcert=\(pasted\)/);
    await card.getByRole('button', { name: `Actions for ${own}` }).click();
    await page.getByRole('menuitem', { name: 'Edit' }).click();
    await form.getByText('saved', { exact: true }).waitFor();
    assert.ok(!(await form.innerText()).includes('BEGIN CERTIFICATE'), 'what is saved is not shown');
    await form.getByRole('button', { name: 'Save connection' }).click();
    await form.waitFor({ state: 'hidden' });
    await page.goto(base);
  });

  await step('says which field is wrong, and what to do', async () => {
    await page.getByRole('link', { name: 'New template' }).first().click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('Connections', { exact: true }).fill('-3');
    const field = page.locator('.field', { has: page.getByLabel('Connections', { exact: true }) });
    await until(
      () => field.locator('.problem').innerText(),
      (s) => s.length > 10,
      'an error at the field Connections',
    );
  });

  await step('keeps form and YAML in step', async () => {
    await page.getByLabel('Connections', { exact: true }).fill('4');
    await page.getByLabel('Table', { exact: true }).fill('journey_orders');
    await page.getByLabel('Rows', { exact: true }).fill('2000');
    await page.getByRole('textbox', { name: 'Duration' }).fill('90');
    await page.getByRole('textbox', { name: 'Warm-up' }).fill('2');
    await page.getByRole('button', { name: 'YAML', exact: true }).click();
    const text = page.getByRole('textbox', { name: /Template as YAML/ });
    await until(
      () => text.inputValue(),
      (s) => /duration_seconds: 90/.test(s) && s.includes('journey_orders'),
      'the YAML of the form',
    );
    await text.fill((await text.inputValue()).replace('duration_seconds: 90', 'duration_seconds: 80'));
    await page.getByRole('button', { name: 'Form', exact: true }).click();
    await until(
      () => page.getByRole('textbox', { name: 'Duration' }).inputValue(),
      (s) => s === '80',
      'the form of the YAML',
    );
  });

  await step("makes a derived table, with the editor's help", async () => {
    const other = await context.newPage();
    await makesATable(other, base);
    await other.close();
  });
  await step('flags names that are not there, and keeps what a refusal says', async () => {
    const other = await context.newPage();
    await keepsItsMessages(other, base);
    await other.close();
  });
  await step('a template that two edit', () => isSavedByTwo(context, base));
  await step('saves the template', async () => {
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.waitForURL(/\/templates\/(?!new)/);
    await page.getByRole('heading', { name }).waitFor();
  });

  await step('starts the run and reaches the measurement', async () => {
    await page.getByRole('button', { name: 'Run', exact: true }).click();
    await page.waitForURL(/\/runs\//);
    await page.getByRole('heading', { name }).waitFor();
    await page.locator('.run-head').getByText('Measurement', { exact: true }).waitFor({ timeout: 60_000 });
  });

  await step('shows figures that change each second', async () => {
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n > 0,
      'a throughput above zero',
    );
    await until(
      () => tile(page, 'P95'),
      (s) => /\d (µs|ms|s)$/.test(s.replace('\n', ' ')) || /\d\s*(µs|ms|s)/.test(s),
      'a P95 with its unit',
    );
    const seen = new Set();
    for (let i = 0; i < 12 && seen.size < 3; i++) {
      seen.add(await exactTile(page, 'Throughput'));
      await page.waitForTimeout(500);
    }
    assert.ok(seen.size >= 3, `the throughput must change at 1 Hz, saw ${[...seen]}`);
    const first = await page.getByRole('timer').innerText();
    await until(
      () => page.getByRole('timer').innerText(),
      (s) => s !== first,
      'a timer that runs',
    );
    assert.ok(
      (await page.getByRole('region', { name: 'Workers' }).locator('tbody tr').count()) >= 1,
      'a row for each worker',
    );
    assert.ok((await page.locator('.log-line').count()) >= 1, 'lines in the log');
    assert.ok((await page.locator('.chart canvas').count()) >= 5, 'charts');
  });

  await step('draws the whole curve again after a reload', async () => {
    const before = await secondsInChart(page);
    assert.ok(before >= 4, `the chart must have a point for each second, it has ${before}`);
    await page.reload();
    await page.locator('.chart canvas').first().waitFor();
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n > 0,
      'live figures after the reload',
    );
    await page.locator('.run-head').getByText('Measurement', { exact: true }).waitFor();
    // The socket alone could know one or two seconds by now.
    await until(
      () => secondsInChart(page),
      (n) => n >= before,
      `the ${before} seconds from before the reload`,
    );
  });

  await step('says that the socket is lost, goes on by polling, and comes back', async () => {
    cut = true;
    for (const s of sockets.splice(0)) await s.close({ code: 4001, reason: 'cut by the test' });
    await page.getByText(/reconnecting, last update \d+ s ago/).waitFor();
    const shown = await exactTile(page, 'Throughput');
    assert.ok(shown > 0, 'what was true stays');
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n !== shown,
      'figures by polling',
    );
    cut = false;
    await page.getByText(/reconnecting/).waitFor({ state: 'detached', timeout: 20_000 });
    const back = await exactTile(page, 'Throughput');
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n !== back,
      'figures by the new socket',
    );
  });

  await step('asks once and stops', async () => {
    await page.getByRole('button', { name: 'Stop and drain' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText(name).waitFor();
    await dialog.getByRole('button', { name: 'Stop and drain' }).click();
    await page.locator('.verdict', { hasText: 'User requested cancellation' }).waitFor({ timeout: 30_000 });
  });

  await step('shows the exact result', async () => {
    await page.getByRole('tab', { name: 'Accounting' }).waitFor({ timeout: 60_000 });
    assert.ok((await exactTile(page, 'Throughput')) > 0, 'an exact throughput');
    await page.getByRole('tab', { name: 'By kind' }).click();
    assert.ok((await page.locator('table tbody tr').count()) >= 2, 'rows for the kinds');
    await page.getByRole('tab', { name: 'Distribution' }).click();
    assert.ok((await page.locator('.dist .bar').count()) > 3, 'bars of the distribution');
  });

  await step('balances the accounting', async () => {
    await page.getByRole('tab', { name: 'Accounting' }).click();
    await page.getByText('Everything is accounted for').waitFor();
    const numbers = await page
      .locator('.balance')
      .evaluateAll((rows) =>
        rows.map((r) => [...r.querySelectorAll('b')].map((b) => Number(b.textContent.replaceAll(',', '')))),
      );
    assert.equal(numbers.length, 3);
    for (const [left, ...parts] of numbers)
      assert.equal(
        left,
        parts.reduce((a, b) => a + b, 0),
        `${left} = ${parts.join(' + ')}`,
      );
    assert.ok(numbers[0][0] > 0, 'something was scheduled');
    assert.match(page.url(), /tab=accounting/);
    await page.reload();
    await page.getByText('Everything is accounted for').waitFor();
  });

  await step('holds a run against a baseline', async () => {
    const other = await context.newPage();
    await comparesWithABaseline(other, base);
    await other.close();
  });
  await step('explores the run in PromQL', () => exploresTheRun(page, base, name));
  await step('finds the run in the derived table, and queries it', () => findsTheRunInTheTable(page, base, name));
  await step('sees who refreshes tables', () => listsRefreshWorkers(page, base));
  await step('edits a definition that somebody else has changed meanwhile', async () => {
    const other = await context.newPage();
    await isEditedByTwo(page, other, base);
    await other.close();
  });
  await step('shares a query, with its chart, by a link', async () => {
    const other = await context.newPage();
    await sharesAQuery(page, other, base);
    await other.close();
  });
  await step('suspends, resumes and drops the table', () => suspendsAndResumes(page, base));
  await step('drains a node that runs beside the server, and lets it work again', async () => {
    await page.goto(`${base}/nodes`);
    const nodes = page.getByRole('row').filter({ has: page.getByRole('button', { name: /^Actions for/ }) });
    const row = nodes.filter({ hasText: /127\.0\.0\.1:\d+/ });
    const act = async (verb, after) => {
      await row.getByRole('button', { name: /^Actions for/ }).click();
      await page.getByRole('menuitem', { name: verb, exact: true }).click();
      await page.getByRole('dialog').getByRole('button', { name: verb, exact: true }).click();
      await row.getByText(after, { exact: true }).waitFor();
    };
    await row.getByText('Active', { exact: true }).waitFor();
    await act('Drain', 'Draining');
    await act('Resume', 'Active');
    await page.getByText('In words').click();
    await page.getByText('An operator has asked it to drain, by admin').waitFor();
  });

  if (process.env.RECEIVER_URL)
    await step('sees what is sent elsewhere', () => exportsTelemetry(page, base, process.env.RECEIVER_URL));

  await step('makes a token by which nodes join, and ends it', async () => {
    const panel = page.getByRole('region', { name: 'Join tokens' });
    await panel.getByRole('button', { name: 'New token' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Nodes').fill('3');
    await dialog.getByLabel('Valid for').selectOption({ label: '1 day' });
    await dialog.getByRole('button', { name: 'Make token' }).click();
    await dialog.getByText(/^LOADSTONE_JOIN=lsn_\S+ loadstone worker --listen HOST:9090/).waitFor();
    await dialog.getByRole('button', { name: 'Done' }).click();
    const row = panel.getByRole('row').filter({ hasText: 'by admin' }).filter({ hasText: '3 nodes may join' });
    await row.getByText(/^in 2[34] h$/).waitFor();
    assert.doesNotMatch(await panel.innerText(), /lsn_/, 'the secret is shown once');
    await row.getByRole('button', { name: /^End the token/ }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'End token' }).click();
    await row.waitFor({ state: 'detached' });
  });

  await step('has a webhook told of runs', () => sendsNotifications(page, base));

  await step('edits the price list', () => editsPrices(page, base));
  await step('looks at the parameters of what failed', () => looksAtParameters(page, base));
  await step('lists the run in the history', async () => {
    await page.getByRole('link', { name: 'Runs', exact: false }).first().click();
    await page.getByRole('searchbox').fill(name);
    const row = page.locator('tbody tr', { hasText: name });
    await row.getByText('Cancelled').waitFor();
    assert.match(page.url(), /search=/);
  });

  await step('signs out, and Back shows nothing', () => signsOutCleanly(page, base));
  await step('stops a run by a rule of its own', () => stopsARunByARule(page, base, name));
  await step('stops a run by a rule of its template', () => stopsARunByItsTemplate(page, base, name));

  assert.deepEqual(wrong, [], 'the browser must have nothing to complain about');
  await context.close();
});

test(
  'upload a plugin, enable it, run it, delete it',
  { timeout: 240_000, skip: !process.env.PLUGIN_FILE },
  async (t) => {
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, storageState: signedIn });
    t.after(() => context.close());
    await pluginJourney(t, await context.newPage(), base, process.env.PLUGIN_FILE);
  },
);
