// States that a healthy server seldom shows, on the mock server.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { accessible } from './axe.mjs';
import { mockServer, onMock } from './mock.mjs';
import { showsStreams } from './streams.mjs';
import { exactTile, opensAbout, opensMore, until } from './steps.mjs';

const { base, open, find } = onMock(8197);

const failWith = (page, prefix) => page.request.post(`${base}/mock/break`, { data: { prefix } });

test('sign-in', async (t) => {
  const { page, step, wrong } = await open(t, { signedIn: false });
  await step('sends an anonymous visitor to the sign-in page and back', async () => {
    await page.goto(`${base}/history?status=FAILED`);
    await page.getByLabel('One-time sign-in link').waitFor();
    await page.getByLabel('One-time sign-in link').fill('wrong');
    await page.getByRole('button', { name: 'Sign in with the link' }).click();
    await page.getByText('has been used or has expired').waitFor();
    await page.getByLabel('One-time sign-in link').fill(`${base}/signin?token=good`);
    await page.getByRole('button', { name: 'Sign in with the link' }).click();
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    assert.match(page.url(), /status=FAILED/);
  });
  assert.deepEqual(wrong, []);
});

test('a session that has ended', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('says so where the page has gone, and leads back', async () => {
    await page.goto(`${base}/history?status=FAILED`);
    await page.getByRole('heading', { name: 'Runs' }).waitFor();
    assert.equal(await page.getByText('Your session has ended.').count(), 0);
    await page.context().clearCookies();
    await page.getByRole('link', { name: 'Templates' }).click();
    await page.getByText('Your session has ended.').waitFor();
    await accessible(page, 'a session that has ended');
    await page.getByLabel('One-time sign-in link').fill(`${base}/signin?token=good`);
    await page.getByRole('button', { name: 'Sign in with the link' }).click();
    await page.getByRole('heading', { name: 'Templates' }).waitFor();
  });
  await step('and not to who comes by a link', async () => {
    await page.context().clearCookies();
    await page.goto(`${base}/history`);
    await page.getByLabel('One-time sign-in link').waitFor();
    assert.equal(await page.getByText('Your session has ended.').count(), 0);
  });
  assert.deepEqual(wrong, []);
});

test('the first minute', async (t) => {
  const { page, step, wrong } = await open(t, { signedIn: false });
  const empty = 8192; // of a server without runs
  const other = await mockServer(empty, '--empty');
  t.after(() => other.kill());
  await step('one button leads from an empty server to a live run', async () => {
    await page.goto(`http://127.0.0.1:${empty}/signin?token=mock`);
    await page.getByRole('button', { name: 'Start the first run' }).click();
    await page.waitForURL(/\/runs\//);
    await page.getByText('Loading sample rows').waitFor();
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n > 0,
      'live figures',
    );
  });
  assert.deepEqual(wrong, []);
});

test('a lost socket', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'checkout peak', 'RUNNING');
  await page.goto(`${base}/runs/${id}`);
  await until(
    () => exactTile(page, 'Throughput'),
    (n) => n > 0,
    'live figures',
  );
  await step('says so, keeps what is true, and comes back by itself', async () => {
    await failWith(page, '/ws');
    await page.request.get(`${base}/mock/sockets`);
    await page.getByText(/reconnecting, last update \d+ s ago/).waitFor();
    assert.ok((await exactTile(page, 'Throughput')) > 0);
    const polled = await exactTile(page, 'Throughput');
    await until(
      () => exactTile(page, 'Throughput'),
      (n) => n !== polled,
      'figures by polling',
    );
    await failWith(page, '');
    await page.getByText(/reconnecting/).waitFor({ state: 'detached', timeout: 15_000 });
  });
  assert.deepEqual(wrong, []);
});

test('a server that answers 503', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('shows what failed and a way to try again', async () => {
    await failWith(page, '/api/templates');
    await page.goto(`${base}/templates`);
    await page.getByText('The templates could not be read.').waitFor({ timeout: 15_000 });
    await page.getByText('The control store is away.').waitFor();
    await failWith(page, '');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('link', { name: 'first run' }).waitFor();
  });
  assert.deepEqual(wrong, []);
});

test('tags, workers and guardrails', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('a tag of a run leads to all runs that carry it, and narrows the list further', async () => {
    await page.goto(`${base}/runs/${await find(page, 'memory guard')}`);
    await page.locator('.run-head').getByRole('link', { name: 'example: first-run' }).click();
    await page.waitForURL(/tag=example%3Afirst-run/);
    await page.getByRole('button', { name: 'Remove the filter example:first-run' }).waitFor();
    const box = page.getByLabel('Filter by tag');
    await box.fill('nonsense');
    await box.press('Enter');
    await page.getByText('Use the form name:value').waitFor();
    await box.fill('ticket: NONE-1');
    await box.press('Enter');
    await page.getByText('No run matches').waitFor();
    await page.getByRole('button', { name: 'Remove the filter ticket:NONE-1' }).click();
    await page.locator('tbody').getByText('memory guard').waitFor();
  });
  await step('each worker of a finished run has its curve', async () => {
    await page.goto(`${base}/runs/${await find(page, 'first run')}?tab=workers`);
    await page.getByRole('img', { name: /Throughput of worker-1 over the run/ }).waitFor();
  });
  await step('guardrails show value and limit', async () => {
    await page.goto(`${base}/runs/${await find(page, 'memory guard')}`);
    await opensAbout(page);
    await page.getByRole('region', { name: 'Guardrails' }).getByText('of 90 %').waitFor();
  });
  assert.deepEqual(wrong, []);
});

test('a phone', async (t) => {
  const { page, step, wrong } = await open(t, { viewport: { width: 390, height: 844 } });
  await step('reaches every place from the bottom bar', async () => {
    for (const name of ['Plugins', 'Settings']) {
      await page.getByRole('button', { name: 'More pages' }).click();
      await page.getByRole('menuitem', { name }).click();
      await page.getByRole('heading', { name, exact: true }).waitFor();
    }
  });
  await step('shows whose tokens there are, no name broken within a word', async () => {
    for (const name of ['nightly-pipeline-of-the-warehouse', 'x'.repeat(100)])
      await page.request.post(`${base}/api/auth/tokens`, { data: { name, scope: 'run', expires_in_days: 7 } });
    await page.goto(`${base}/settings/tokens`);
    const everybodys = page.getByRole('region', { name: 'Tokens and sessions of all users' });
    for (const name of ['nightly-pipeline-of-the-warehouse', 'grace@example.com']) {
      const shown = everybodys.getByText(name, { exact: true }).first();
      await shown.waitFor();
      const lines = await shown.evaluate((e) => {
        const text = document.createRange();
        text.selectNodeContents(e);
        return text.getClientRects().length;
      });
      assert.equal(lines, 1, `${name} is on several lines`);
    }
    await everybodys.getByText('expires in 6 days').first().waitFor();
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 390);
    await accessible(page, 'tokens on a phone');
  });
  assert.deepEqual(wrong, []);
});

test('results', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('a run that failed says why', async () => {
    await page.goto(`${base}/runs/${await find(page, 'memory guard')}`);
    await page.getByText('Guardrail triggered: generator memory was over 90 % for 5 s').waitFor();
  });
  await step('a run whose thresholds failed names them', async () => {
    await page.goto(`${base}/runs/${await find(page, 'orders under contention')}`);
    await page.locator('.verdict.bad', { hasText: 'error_rate < 0.001' }).waitFor();
    await page.getByText('may show the limit of the generator').waitFor();
  });
  await step('records that are missing are seen', async () => {
    await page.goto(`${base}/runs/${await find(page, 'lost records')}?tab=accounting`);
    await page.getByText('difference 1,204').waitFor();
  });
  await step('a zoom is kept in the address', async () => {
    await page.goto(`${base}/runs/${await find(page, 'first run')}?range=5-10`);
    await page.getByRole('button', { name: 'Reset zoom' }).click();
    assert.doesNotMatch(page.url(), /range/);
  });
  assert.deepEqual(wrong, []);
});

test('templates', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('an error in the YAML is shown at its line', async () => {
    await page.goto(`${base}/templates/new?as=yaml`);
    const text = page.getByRole('textbox', { name: /Template as YAML/ });
    await text.fill('name: x\ntarget: {table_name: orders}\nworkload:\n  plugin: mix\n  durations: 5\n');
    await page.getByRole('button', { name: /line 5.*workload.durations.*did you mean duration_seconds/ }).waitFor();
  });
  await step('a name that is taken is shown at its field', async () => {
    await page.goto(`${base}/templates/new`);
    await page.evaluate(() => sessionStorage.clear());
    await page.reload();
    await page.getByLabel('Name', { exact: true }).fill('first run');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('There is a template named “first run” already.').waitFor();
  });
  await step('unsaved changes survive leaving the page', async () => {
    await page.getByRole('link', { name: 'Connections' }).click();
    await page.getByRole('heading', { name: 'Connections', level: 1 }).waitFor(); // the editor is gone
    await page.goBack();
    await page.getByText('Your unsaved changes were restored.').waitFor();
    assert.equal(await page.getByLabel('Name', { exact: true }).inputValue(), 'first run');
  });
  await step('an open loop has a rate, and stages with their curve', async () => {
    await page.getByLabel('Load mode').selectOption('QPS');
    assert.equal(await page.getByLabel('Target rate').inputValue(), '500');
    assert.equal(await page.getByLabel('Think time', { exact: true }).count(), 0);
    await opensMore(page, 'Load');
    await page.getByRole('button', { name: 'Add stage' }).click();
    await page.getByLabel('Stage 1: rate').fill('2000');
    await page.getByRole('img', { name: 'The stages as a curve, up to 2,000' }).waitFor();
    await page.getByText('The stages last 30 s.').waitFor();
    await page.getByLabel('Rate at the start').waitFor();
    assert.equal(await page.getByLabel('Duration', { exact: true }).count(), 0);
    await page.getByLabel('Load mode').selectOption('CONCURRENCY');
    assert.equal(await page.getByLabel('Stage 1: rate').count(), 0);
    assert.equal(await page.getByLabel('Duration', { exact: true }).inputValue(), '60');
  });
  assert.deepEqual(wrong, []);
});

test('keyboard', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('jumps, searches and explains itself', async () => {
    await page.keyboard.press('g');
    await page.keyboard.press('t');
    await page.getByRole('heading', { name: 'Templates' }).waitFor();
    await page.keyboard.press('/');
    await page.keyboard.type('insert');
    await until(
      () => page.locator('tbody tr').count(),
      (n) => n === 1,
      'one match',
    );
    await page.getByRole('heading', { name: 'Templates' }).click();
    await page.keyboard.press('j');
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/templates\/.+/);
    await page.getByRole('heading', { name: 'insert only' }).click();
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
  });
  await step('walks the runs and chooses two of them', async () => {
    await page.goto(`${base}/history`);
    await page.locator('tbody a.name').nth(2).waitFor();
    for (const key of ['j', 'x', 'j', 'j', 'x']) await page.keyboard.press(key);
    await page.getByText('2 runs selected').waitFor();
    const chosen = await page.locator('tbody input[type=checkbox]').evaluateAll((all) => all.map((b) => b.checked));
    assert.deepEqual(chosen.slice(0, 4), [true, false, true, false]);
    await page.keyboard.press('x');
    await page.getByText('1 run selected').waitFor();
  });
  assert.deepEqual(wrong, []);
});

test('plugins', async (t) => {
  const { page, step, wrong } = await open(t);
  const file = (name, text) => ({ name, mimeType: 'application/wasm', buffer: Buffer.from(text) });
  const choose = page.locator('input[type=file]');
  await step('a refused file is told in a sentence, and can be put away', async () => {
    await page.goto(`${base}/plugins`);
    await choose.setInputFiles(file('notes<b>.wasm', 'hello'));
    const notice = page.locator('.dropzone [role=alert]');
    await notice.getByText('notes<b>.wasm was refused.').waitFor();
    await notice.getByText('it is a text, not a WebAssembly module').waitFor();
    await accessible(page, 'a refused plugin');
    await page.getByRole('button', { name: 'Dismiss' }).click();
    await notice.waitFor({ state: 'detached' });
  });
  await step('a file that is too large is not even sent', async () => {
    let sent = 0;
    page.on('request', (r) => r.method() === 'POST' && r.url().endsWith('/api/plugins') && sent++);
    await choose.setInputFiles(file('big.wasm', Buffer.alloc((8 << 20) + 1)));
    await page.getByText('A plugin may have at most 8 MB').waitFor();
    assert.equal(sent, 0);
  });
  await step('progress is shown, and an upload can be cancelled', async () => {
    await page.route('**/api/plugins', (r) => (r.request().method() === 'POST' ? undefined : r.continue()));
    await choose.setInputFiles(file('slow.wasm', '\0asm'));
    await page.getByRole('progressbar', { name: 'Upload of slow.wasm' }).waitFor();
    await accessible(page, 'an upload under way');
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.getByRole('progressbar').waitFor({ state: 'detached' });
    await page.unroute('**/api/plugins');
  });
  await step('a plugin that passes is shown at once, and dropped files are taken too', async () => {
    const transfer = await page.evaluateHandle(() => {
      const d = new DataTransfer();
      d.items.add(new File(['\0asm'], 'counters.wasm'));
      return d;
    });
    await page.dispatchEvent('.dropzone', 'dragover', { dataTransfer: transfer });
    await page.getByText('Release to upload').waitFor();
    await page.dispatchEvent('.dropzone', 'drop', { dataTransfer: transfer });
    await page.getByText('counters 1.2.0 passed quarantine and is stored, disabled.').waitFor();
    await page.getByRole('region', { name: 'counters@1.2.0' }).getByText('Disabled').waitFor();
    assert.match(page.url(), /plugin=counters(@|%40)1\.2\.0/);
  });
  await step('invalid parameters are explained at their field', async () => {
    await page.getByLabel('Reads', { exact: true }).fill('200');
    await page.getByText('is out of range: 0 to 100.').waitFor();
    await page.getByText('One value is not valid; its field says why.').waitFor();
    await page.getByLabel('Reads', { exact: true }).fill('30');
    await page.getByText('reads: 30').waitFor();
    await page.getByText('These values are valid.').waitFor();
  });
  await step('versions are compared from the older to the newer', async () => {
    await page.goto(`${base}/plugins?plugin=counters@1.1.0`);
    await page.getByText('From 1.0.0 to 1.1.0:').waitFor();
    await page.locator('.version-diff.added', { hasText: 'Statement reset added' }).waitFor();
  });
  await step('enabling and deleting ask once, with the keyboard too; a refused delete says who uses it', async () => {
    await page.getByRole('button', { name: 'Enable', exact: true }).press('Enter');
    await page.getByRole('dialog', { name: 'Enable counters@1.1.0?' }).waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Enable', exact: true }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Enable plugin' }).click();
    await page.getByRole('region', { name: 'counters@1.1.0' }).getByText('Enabled', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'counters 1.0.0' }).click();
    await page.getByRole('button', { name: 'Delete' }).click();
    const dialog = page.getByRole('dialog', { name: 'Delete counters@1.0.0?' });
    await dialog.getByRole('button', { name: 'Delete plugin' }).click();
    await dialog.getByText('A template uses the plugin counters@1.0.0: "hot counters".').waitFor();
    await dialog.getByRole('button', { name: 'Keep' }).click();
  });
  await step('the form of a template offers each version', async () => {
    await page.goto(`${base}/templates/new`);
    const offered = page.getByLabel('Plugin', { exact: true }).locator('option');
    for (const version of ['1.1.0', '1.0.0'])
      await offered.filter({ hasText: `counters@${version}, always this version` }).waitFor({ state: 'attached' });
    const options = await offered.allInnerTexts();
    assert.ok(!options.some((o) => o.includes('0.9.0')), 'a damaged plugin must not be offered');
  });
  await step('a list that cannot be read says so', async () => {
    await failWith(page, '/api/plugins');
    await page.goto(`${base}/plugins`);
    await page.getByText('The plugins could not be read.').waitFor();
    await failWith(page, '');
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByRole('button', { name: 'mix 1.0.0' }).waitFor();
  });
  assert.deepEqual(wrong, []);
});

test('comparing runs', async (t) => {
  const { page, step, wrong } = await open(t);
  const [first, bad] = [await find(page, 'first run'), await find(page, 'orders under contention')];
  await step('runs are marked in the list', async () => {
    await page.goto(`${base}/history`);
    await page.getByLabel('Compare first run').first().check();
    await page.getByText('select one more to compare').waitFor();
    assert.equal(await page.getByRole('button', { name: 'Compare', exact: true }).isDisabled(), true);
    await page.getByLabel('Compare orders under contention').check();
    await page.getByText('the first is the baseline').waitFor();
    assert.match(page.url(), new RegExp(`selected=${first}%2C${bad}`));
  });
  await step('the trend of a figure is drawn over them', async () => {
    const trend = page.getByRole('region', { name: 'Trend of 2 selected runs' });
    await page.getByRole('button', { name: 'Trend', exact: true }).click();
    await trend.getByText(/^P95 of 2 runs: .* ms to .* ms, the newest .* ms\.$/).waitFor();
    assert.equal(await trend.locator('.drift-picture[role=img] .dot').count(), 2);
    await trend.getByLabel('Figure of the trend').selectOption('Throughput');
    await trend.getByText(/^Throughput of 2 runs: .*\/s/).waitFor();
    await accessible(page, 'the trend of marked runs');
    await trend.getByRole('button', { name: 'Close the trend' }).click();
  });
  await step('columns and order are chosen, saved as a view and called again', async () => {
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'Connections' }).click();
    await page.getByRole('menuitemcheckbox', { name: 'P99' }).click();
    await accessible(page, 'the columns of the list');
    await page.keyboard.press('Escape');
    await page.getByRole('columnheader', { name: 'Connections' }).getByRole('button').click();
    assert.equal(await page.getByRole('columnheader', { name: 'P99' }).count(), 0);
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Save this view' }).click();
    await page.getByLabel('Name of the view').fill('<b>\u202ewidest</b>');
    await page.getByRole('button', { name: 'Save view' }).click();
    await page.getByText('was saved').waitFor();
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Share and delete views' }).click();
    await page.getByRole('button', { name: 'Share the view <b>\ufffdwidest</b>' }).click();
    await page.getByRole('button', { name: 'Stop sharing the view <b>\ufffdwidest</b>' }).waitFor();
    await accessible(page, 'the views that are shared');
    await page.keyboard.press('Escape');
    // Views saved in the browser move to the server, once; conflicts keep their name.
    await page.evaluate(() =>
      localStorage.setItem(
        'loadstone.runs.views.u1',
        JSON.stringify([
          { name: 'of this browser', search: 'sort=name&columns=qps' },
          { name: '<b>\ufffdwidest</b>', search: 'sort=qps&columns=qps' },
        ]),
      ),
    );
    await page.goto(`${base}/history`);
    await page.getByText('are now saved on the server').waitFor();
    assert.equal(await page.evaluate(() => localStorage.getItem('loadstone.runs.views.u1')), null);
    const savedViews = await (await page.request.get(`${base}/api/v1/run-views`)).json();
    assert.deepEqual(
      savedViews.views.map((v) => v.name),
      ['<b>\ufffdwidest</b>', '<b>\ufffdwidest</b> (browser)', 'Failed, slowest first', 'of this browser'],
    );
    await page.getByRole('columnheader', { name: 'Connections' }).waitFor(); // kept in the browser
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitemcheckbox', { name: '<b>\ufffdwidest</b> shared' }).click();
    await page.waitForURL((u) => u.searchParams.get('sort') === '-connections' && !u.searchParams.has('selected'));
    await page.getByRole('button', { name: 'Columns' }).click();
    await page.getByRole('menuitem', { name: 'Default columns' }).click();
    await page.getByRole('columnheader', { name: 'P99' }).waitFor();
    await page.goto(`${base}/history?selected=${first},${bad}`);
  });
  await step('their figures stand side by side, with a verdict', async () => {
    await page.getByRole('button', { name: 'Compare', exact: true }).click();
    const figures = page.getByRole('region', { name: 'Figures' });
    await figures.getByText('worse', { exact: true }).waitFor();
    const shown = await figures.locator('tbody tr').nth(1).innerText();
    const c = await (await page.request.get(`${base}/api/compare?a=${first}&b=${bad}`)).json();
    const p99 = c.metrics.find((m) => m.name === 'p99_ms').difference;
    assert.ok(shown.includes(`${Math.abs(p99).toFixed(1)} %`), `${p99} is not in ${shown}`);
    assert.equal(await page.locator('.overlay path').count(), 2);
  });
  await step('the address keeps what was chosen', async () => {
    await page.getByRole('button', { name: 'cumulative' }).click();
    await page.getByRole('button', { name: 'P99', exact: true }).click();
    await page.getByLabel('Curves of B orders under contention').click();
    await page.getByLabel('Tolerance').selectOption('20');
    await page.getByText('tolerance 20 %').waitFor();
    const url = new URL(page.url());
    assert.deepEqual(
      ['dist', 'p', 'off', 'tolerance'].map((k) => url.searchParams.get(k)),
      ['below', 'p99', 'B', '20'],
    );
    await page.reload();
    await page.getByRole('heading', { name: 'Latency, P99' }).waitFor();
    await page.locator('.overlay path').first().waitFor({ state: 'attached' });
    assert.equal(await page.locator('.overlay path').count(), 1);
  });
  await step('what differs is named, and the baseline can be changed', async () => {
    await page.getByRole('region', { name: 'Differences' }).getByText('workload.duration_seconds').waitFor();
    await page.getByLabel('Actions for run 2').click();
    await page.getByRole('menuitem', { name: 'Make it the baseline' }).click();
    await page.waitForURL((u) => u.searchParams.get('runs') === `${bad},${first}`);
  });
  await step('it can be copied as Markdown', async () => {
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await page
      .getByRole('region', { name: 'Figures' })
      .locator('tbody .badge', { hasText: /better|worse|same|unclear/ })
      .waitFor();
    await page.getByLabel('Copy or save the comparison').click();
    await page.getByRole('menuitem', { name: 'Copy as Markdown' }).click();
    await page.getByText('Copied.', { exact: true }).waitFor(); // what is read before that may be what was there
    const text = await page.evaluate(() => navigator.clipboard.readText());
    assert.match(text, /\| A orders under contention \|/);
  });
  await step('a run that is not there, and a simulated one, are told', async () => {
    const hybrid = await find(page, 'hybrid table');
    await page.goto(`${base}/compare?runs=${first},${hybrid}`);
    await page.getByText('simulated', { exact: true }).first().waitFor();
    await failWith(page, '/api/compare');
    await page.goto(`${base}/compare?runs=${first},${bad}`);
    await page.getByText('could not be compared').waitFor({ timeout: 20_000 });
    await failWith(page, '');
    await page.goto(`${base}/compare?runs=${first}`);
    await page.getByText('Choose at least two runs').waitFor();
  });
  assert.deepEqual(wrong, []);
});

test('one workload on several targets', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('is compared while it runs, and says what is simulated', async () => {
    await page.goto(`${base}/matrix/m-1`);
    await page.getByText('2 of 3 targets are done').waitFor();
    const rows = page.getByRole('region', { name: 'Figures' }).locator('tbody tr');
    await rows
      .nth(1)
      .getByText(/better|worse|same|unclear/)
      .first()
      .waitFor();
    assert.equal(await rows.nth(2).getByText('Running').count(), 1);
    assert.deepEqual(
      await Promise.all([0, 1, 2].map((i) => rows.nth(i).locator('.badge.simulated').count())),
      [1, 1, 0],
    );
    await rows.nth(2).getByText(/k\/s/).waitFor();
  });
  await step('a run leads back to it', async () => {
    await page.getByRole('link', { name: 'hybrid', exact: true }).click();
    await page.getByRole('link', { name: 'target of a matrix: hybrid' }).click();
    await page.waitForURL(`${base}/matrix/m-1`);
  });
  await step('can be stopped as a whole', async () => {
    await page.getByRole('button', { name: 'Stop and drain' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Stop and drain' }).click();
    await page.locator('.page-head').getByText('Cancelled').waitFor({ timeout: 20_000 });
    await page.getByText('3 targets, one after another').waitFor();
  });
  await step('the form makes several targets of one, and one of several', async () => {
    await page.goto(`${base}/templates/new`);
    await page.getByRole('button', { name: 'Compare with another target' }).click();
    assert.equal(await page.locator('.matrix-target').count(), 2);
    await page.getByRole('button', { name: 'Add a target' }).click();
    assert.equal(await page.locator('.matrix-target').count(), 3);
    await page.locator('.matrix-target').nth(2).getByLabel('Label').fill('the third');
    await page.getByRole('button', { name: 'YAML' }).click();
    assert.match(await page.locator('textarea').first().inputValue(), /matrix:[\s\S]*label: the third/);
  });
  assert.deepEqual(wrong, []);
});

test('a search for the limit', async (t) => {
  const { page, step, wrong } = await open(t);
  await step('live: the step under way, the searches and steps before', async () => {
    await page.goto(`${base}/runs/${await find(page, 'limit, live')}`);
    const panel = page.getByRole('region', { name: 'Find Max' });
    await panel.getByText(/Search \d+ of 20, step \d+:/).waitFor();
    assert.ok((await panel.getByRole('table', { name: 'Steps' }).locator('tbody tr').count()) >= 10);
    assert.ok((await panel.getByRole('table', { name: 'Searches' }).locator('tbody tr').count()) >= 1);
  });
  await step('its answer, and the spread of a repeated one', async () => {
    const id = await find(page, 'limit of orders, five times');
    const { find_max: f } = (await (await page.request.get(`${base}/api/runs/${id}`)).json()).summary;
    await page.goto(`${base}/runs/${id}`);
    const panel = page.getByRole('region', { name: 'Find Max' });
    await panel.getByText('5 of 5 finished, 5 with an answer').waitFor();
    assert.match(
      await page.locator('.find-hero').innerText(),
      new RegExp(`sustains\\s+${f.max_connections}\\s+connections`),
    );
    assert.ok(
      (await panel.innerText()).includes(
        `${f.spread.level.median} median, ${f.spread.level.min} to ${f.spread.level.max}`,
      ),
    );
    assert.equal(await panel.getByRole('table', { name: 'Steps' }).locator('tbody tr').count(), f.steps);
  });
  assert.deepEqual(wrong, []);
});

test('streams', async (t) => {
  const { page, step, wrong } = await open(t);
  await showsStreams(page, base, step, failWith);
  assert.deepEqual(wrong, []);
});

test('buttons beside each other', async (t) => {
  const { page, step, wrong } = await open(t);
  for (const path of ['/settings', '/connections', '/templates', '/history', '/tables', '/query', '/nodes', '/plugins'])
    await step(`do not touch on ${path}`, async () => {
      await page.goto(base + path);
      await page.locator('h1').first().waitFor();
      await page.waitForLoadState('networkidle');
      const touching = await page.evaluate(() => {
        const boxes = [...document.querySelectorAll('main .btn')]
          .map((b) => ({ name: b.textContent.trim(), at: b.getBoundingClientRect() }))
          .filter((b) => b.at.width > 0);
        return boxes.flatMap((a, i) =>
          boxes
            .slice(i + 1)
            .filter((b) => Math.abs(b.at.top - a.at.top) < 4 && Math.abs(b.at.left - a.at.right) < 2)
            .map((b) => `${a.name} | ${b.name}`),
        );
      });
      assert.deepEqual(touching, []);
    });
  assert.deepEqual(wrong, []);
});
