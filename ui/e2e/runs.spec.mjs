// Requests of the run pages, on the mock server: filters, order, paging, bulk actions, executions, comparison. Server
// tests cover the results.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { test } from 'node:test';
import { onMock } from './mock.mjs';
import { until } from './steps.mjs';

const { base, open, find } = onMock(8193);

/** requestsAfter acts, and returns the query of the first matching request. */
async function requestsAfter(page, path, act, ok) {
  const found = page.waitForRequest((r) => {
    const url = new URL(r.url());
    return (typeof path === 'string' ? url.pathname === path : path.test(url.pathname)) && ok(url.searchParams);
  });
  await act();
  const request = await found;
  return new URL(request.url()).searchParams;
}

const rows = (page) => page.locator('.table.cards tbody tr');
const names = (page) => page.locator('.table.cards tbody a.name').allInnerTexts();

/** shows waits until the list has these runs in this order. */
const shows = (page, wanted) =>
  until(
    () => names(page),
    (list) => list.join('\n') === wanted.join('\n'),
    `the list is not ${wanted.slice(0, 3).join(', ')}, …`,
    8_000,
  );

/** answered returns the run names of a direct request. */
async function answered(page, query) {
  const { runs } = await (await page.request.get(`${base}/api/runs?limit=25&${query}`)).json();
  return runs.map((r) => r.test_name);
}

test('the list of runs', async (t) => {
  const { page, step, wrong } = await open(t);
  const list = (act, ok) => requestsAfter(page, '/api/runs', act, ok);
  await step('is narrowed by status, by thresholds that failed, by template and time', async () => {
    await page.goto(`${base}/history`);
    await rows(page).first().waitFor();
    const status = page.getByLabel('Status', { exact: true });
    const failed = await list(
      () => status.selectOption('Thresholds failed'),
      (q) => q.has('thresholds'),
    );
    assert.equal(failed.get('thresholds'), 'failed');
    assert.equal(failed.get('status'), null, 'a run that failed its thresholds has completed');
    assert.equal(new URL(page.url()).searchParams.get('status'), 'failed-thresholds');
    const ended = await list(
      () => status.selectOption('Failed'),
      (q) => q.get('status') === 'FAILED',
    );
    assert.equal(ended.get('thresholds'), null);
    await shows(page, ['memory guard', 'stopped by a rule']);
    await page.getByRole('button', { name: 'Clear filters' }).click();
    const { templates } = await (await page.request.get(`${base}/api/templates`)).json();
    const { template_id: of } = templates.find((x) => x.name === 'checkout peak');
    await list(
      () => page.getByLabel('Template', { exact: true }).selectOption('checkout peak'),
      (q) => q.get('template_id') === of,
    );
    await list(
      () => page.getByLabel('Time', { exact: true }).selectOption('24h'),
      (q) => Math.abs(Date.now() - Date.parse(q.get('since')) - 864e5) < 600_000 && q.get('template_id') === of,
    );
    await page.getByRole('button', { name: 'Clear filters' }).click();
  });
  await step('is in the order that is asked for, the other way, and newest first again', async () => {
    // A live run's figures change, and with them its position.
    await page.goto(`${base}/history?status=COMPLETED`);
    const head = page.getByRole('columnheader', { name: 'P95' });
    const press = (order) =>
      list(
        () => head.getByRole('button').click(),
        (q) => q.get('sort') === (order ? 'p95_ms' : null) && q.get('order') === order,
      );
    await press('asc');
    await page.locator('th[aria-sort=ascending]').waitFor();
    await shows(page, await answered(page, 'status=COMPLETED&sort=p95_ms&order=asc'));
    await press('desc');
    await page.locator('th[aria-sort=descending]').waitFor();
    await shows(page, await answered(page, 'status=COMPLETED&sort=p95_ms&order=desc'));
    await head.getByRole('button').click();
    await page.locator('th[aria-sort]').waitFor({ state: 'detached' });
    assert.equal(new URL(page.url()).searchParams.get('sort'), null);
    const most = page.getByRole('columnheader', { name: 'Throughput' });
    await list(
      () => most.getByRole('button').click(),
      (q) => q.get('sort') === 'qps' && q.get('order') === 'desc',
    );
  });
  await step('is read page by page, and a filter begins at the first page', async () => {
    await page.goto(`${base}/history`);
    await rows(page).first().waitFor();
    const first = await names(page);
    await list(
      () => page.getByRole('button', { name: 'Older' }).click(),
      (q) => q.get('cursor') === '25' && q.get('limit') === '25',
    );
    await page.waitForURL((u) => u.searchParams.get('cursor') === '25');
    await page.getByRole('button', { name: 'Back', exact: true }).click();
    await page.waitForURL((u) => !u.searchParams.has('cursor'));
    await shows(page, first);
    await page.getByRole('button', { name: 'Older' }).click();
    await page.waitForURL((u) => u.searchParams.has('cursor'));
    const narrowed = await list(
      () => page.getByLabel('Status', { exact: true }).selectOption('Failed'),
      (q) => q.get('status') === 'FAILED',
    );
    assert.equal(narrowed.get('cursor'), null);
  });
  await step('its trend is that of all runs of the filters, whatever page and order is shown', async () => {
    await page.goto(`${base}/history?search=first&sort=p95_ms&cursor=1`);
    const asked = await list(
      () => page.getByRole('button', { name: 'Trend', exact: true }).click(),
      (q) => q.get('limit') === '50',
    );
    assert.deepEqual(
      ['search', 'sort', 'order', 'cursor'].map((n) => asked.get(n)),
      ['first', 'created', 'desc', null],
    );
  });
  assert.deepEqual(wrong, []);
});

test('several runs at once', async (t) => {
  const { page, step, wrong } = await open(t);
  const marked = page.locator('.selection');
  const more = async (n, item) => {
    await page.getByRole('button', { name: `More for ${n} runs` }).click();
    await page.getByRole('menuitem', { name: item }).click();
  };
  let ids;
  await step('are marked one by one and all of a page, and counted', async () => {
    await page.goto(`${base}/history?search=insert+only`);
    await rows(page).first().waitFor();
    const all = await rows(page).count();
    await page.locator('.pick-all').check();
    await marked.getByText(`${all} runs`).waitFor();
    await page.locator('.pick-all').uncheck();
    await marked.waitFor({ state: 'detached' });
    for (const i of [0, 1]) await rows(page).nth(i).getByRole('checkbox').check();
    await marked.getByText('2 runs').waitFor();
    ids = new URL(page.url()).searchParams.get('selected').split(',');
    assert.equal(ids.length, 2);
  });
  await step('get a tag beside those that they have', async () => {
    const sent = [];
    page.on('request', (r) => r.method() === 'PUT' && sent.push([new URL(r.url()).pathname, r.postDataJSON()]));
    await more(2, 'Add a tag');
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Tag, as name:value').fill('no tag');
    await dialog.getByText('Use the form name:value.').waitFor();
    await dialog.getByLabel('Tag, as name:value').fill('ticket:PERF-7');
    await dialog.getByRole('button', { name: 'Add tag' }).click();
    await page.getByText('2 runs were tagged.').waitFor();
    assert.deepEqual(
      sent,
      ids.map((id) => [
        `/api/runs/${id}/tags`,
        { tags: { example: 'first-run', ticket: 'PERF-7' }, was: { example: 'first-run' } },
      ]),
    );
  });
  await step('are saved as a table', async () => {
    const [file] = await Promise.all([page.waitForEvent('download'), more(2, 'Save as CSV')]);
    const lines = (await readFile(await file.path(), 'utf8')).trim().split('\r\n');
    assert.deepEqual(
      lines.slice(1).map((l) => l.split(',')[0]),
      ids,
    );
    const { runs } = await (await page.request.get(`${base}/api/runs?limit=200`)).json();
    const p95 = lines[0].split(',').indexOf('p95_ms');
    assert.equal(Number(lines[1].split(',')[p95]), runs.find((r) => r.run_id === ids[0]).p95_ms);
  });
  await step('are deleted when that is said once more, and no others', async () => {
    const before = await rows(page).count();
    await more(2, 'Delete');
    const dialog = page.getByRole('dialog');
    await dialog.getByText('insert only, insert only').waitFor();
    await dialog.getByRole('button', { name: 'Keep' }).click();
    for (const id of ids) assert.equal((await page.request.get(`${base}/api/runs/${id}`)).status(), 200);
    await more(2, 'Delete');
    await dialog.getByRole('button', { name: 'Delete 2 runs' }).click();
    await page.getByText('2 runs were deleted.').waitFor();
    await marked.waitFor({ state: 'detached' });
    await rows(page)
      .nth(before - 2)
      .waitFor({ state: 'detached' });
    for (const id of ids) assert.equal((await page.request.get(`${base}/api/runs/${id}`)).status(), 404);
  });
  assert.deepEqual(wrong, []);
});

test('single executions', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'first run');
  const table = (act, ok) => requestsAfter(page, `/api/v1/runs/${id}/executions`, act, ok);
  const filters = page.getByRole('search', { name: 'Filters of executions' });
  await step('are asked for with all that the filters say', async () => {
    await table(
      () => page.goto(`${base}/runs/${id}?tab=executions`),
      (q) => q.get('sort') === 'time' && q.get('order') === 'desc' && q.get('limit') === '50' && !q.has('cursor'),
    );
    await page.getByText('of 412,000 recorded').waitFor();
    for (const [label, option, name, value] of [
      ['Kind', 'Insert', 'kind', 'INSERT'],
      ['Worker', 'worker-1', 'worker', 'worker-1'],
      ['Outcome', 'Failed', 'outcome', 'failed'],
      ['Phase', 'Warm-up', 'phase', 'WARMUP'],
    ])
      await table(
        () => filters.getByLabel(label, { exact: true }).selectOption(option),
        (q) => q.get(name) === value,
      );
    const bound = async (label, value, name) =>
      table(
        async () => {
          await filters.getByLabel(label).fill(value);
          await filters.getByLabel(label).press('Enter');
        },
        (q) => q.has(name),
      );
    const start = Date.parse((await (await page.request.get(`${base}/api/runs/${id}`)).json()).start_time);
    assert.equal(Date.parse((await bound('From, s', '2.5', 'from')).get('from')), start + 2_500);
    assert.equal(Date.parse((await bound('until, s', '9', 'until')).get('until')), start + 9_000);
    assert.equal((await bound('Above, ms', '3', 'over_ms')).get('over_ms'), '3');
    const last = await bound('up to, ms', '40', 'upto_ms');
    assert.deepEqual(
      ['kind', 'worker', 'outcome', 'phase', 'over_ms', 'upto_ms'].map((n) => last.get(n)),
      ['INSERT', 'worker-1', 'failed', 'WARMUP', '3', '40'],
    );
    await filters.getByLabel('up to, ms').fill('2');
    await filters.getByLabel('up to, ms').press('Enter');
    await page.getByText('“Up to” must exceed “Above”.').waitFor();
    await page.getByRole('button', { name: 'Clear filters' }).click();
    await page.waitForURL((u) => u.search === '?tab=executions');
  });
  await step('are in the order of their latencies, the longest first, then the shortest', async () => {
    const head = page.getByRole('columnheader', { name: 'Latency' });
    for (const order of ['desc', 'asc'])
      await table(
        () => head.getByRole('button').click(),
        (q) => q.get('sort') === 'latency' && q.get('order') === order,
      );
    assert.equal(await head.getAttribute('aria-sort'), 'ascending');
  });
  await step('come page by page, and a filter begins at the first', async () => {
    const body = page.locator('.executions tbody');
    await page.goto(`${base}/runs/${id}?tab=executions`);
    await body.getByText('4,100', { exact: true }).waitFor();
    await table(
      () => page.getByRole('button', { name: 'Next 50' }).click(),
      (q) => q.get('cursor') === 'second',
    );
    await body.getByText('9,000', { exact: true }).waitFor();
    assert.equal(await body.getByText('4,100', { exact: true }).count(), 0);
    await page.locator('.pager button:disabled', { hasText: 'Next' }).waitFor();
    const narrowed = await table(
      () => filters.getByLabel('Outcome', { exact: true }).selectOption('Failed'),
      (q) => q.get('outcome') === 'failed',
    );
    assert.equal(narrowed.get('cursor'), null);
  });
  await step('are those of a cell of the heat map that is opened', async () => {
    await page.goto(`${base}/runs/${id}`);
    const heat = page.getByRole('application', { name: 'Latency heat map' });
    await heat.focus();
    await page.keyboard.press('End');
    const asked = await table(
      () => page.keyboard.press('Enter'),
      (q) => q.has('over_ms'),
    );
    assert.equal(Date.parse(asked.get('until')) - Date.parse(asked.get('from')), 1_000);
    assert.ok(Number(asked.get('over_ms')) < Number(asked.get('upto_ms')));
    assert.deepEqual([asked.get('sort'), asked.get('order')], ['latency', 'desc']);
  });
  assert.deepEqual(wrong, []);
});

test('a comparison asks for the baseline against each of the others', async (t) => {
  const { page, step, wrong } = await open(t);
  const ids = await Promise.all(
    ['first run', 'orders under contention', 'hybrid table'].map((name) => find(page, name)),
  );
  const requests = [];
  page.on('request', (r) => {
    const url = new URL(r.url());
    if (!/^\/api\/(v1\/)?compare/.test(url.pathname)) return;
    const q = url.searchParams;
    requests.push(`${url.pathname} ${ids.indexOf(q.get('a'))} ${ids.indexOf(q.get('b'))} ${q.get('tolerance_pct')}`);
  });
  const figures = page.getByRole('region', { name: 'Figures' });
  const judged = async (n) => {
    for (let i = 1; i < n; i++)
      await figures
        .locator('tbody tr')
        .nth(i)
        .getByText(/better|worse|same|unclear/)
        .first()
        .waitFor();
    await page.getByRole('region', { name: 'By kind and statement' }).locator('tbody tr').first().waitFor();
  };
  const of = (base, others, tolerance) =>
    others
      .flatMap((o) => [`/api/compare ${base} ${o} ${tolerance}`, `/api/v1/compare/parts ${base} ${o} ${tolerance}`])
      .sort();
  await step('with the tolerance that is chosen', async () => {
    await page.goto(`${base}/compare?runs=${ids.join(',')}`);
    await judged(3);
    assert.deepEqual(requests.splice(0).sort(), of(0, [1, 2], 5));
    await page.getByLabel('Tolerance').selectOption('20');
    await page.getByText('tolerance 20 %').waitFor();
    await judged(3);
    assert.deepEqual(requests.splice(0).sort(), of(0, [1, 2], 20));
  });
  await step('without one that is taken out', async () => {
    await page.getByLabel('Actions for run 2').click();
    await page.getByRole('menuitem', { name: 'Remove from comparison' }).click();
    await page.waitForURL((u) => u.searchParams.get('runs') === `${ids[0]},${ids[2]}`);
    assert.equal(await figures.locator('tbody tr').count(), 2);
  });
  await step('whose figures say which way they differ', async () => {
    await page.goto(`${base}/compare?runs=${ids[0]},${ids[1]}`);
    await judged(2);
    const { metrics } = await (await page.request.get(`${base}/api/compare?a=${ids[0]}&b=${ids[1]}`)).json();
    const m = metrics.find((x) => x.name === 'p99_ms');
    const sign = m.difference > 0 ? '+' : '−';
    const shown = await figures.locator('tbody tr').nth(1).innerText();
    assert.ok(shown.includes(`${sign}${Math.abs(m.difference).toFixed(1)} %`), `${sign}${m.difference} in ${shown}`);
  });
  assert.deepEqual(wrong, []);
});

test('the note and the tags of a run', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'first run', 'COMPLETED');
  const put = async (what, data) =>
    assert.equal((await page.request.put(`${base}/api/runs/${id}/${what}`, { data })).status(), 200);
  const dialog = page.getByRole('dialog');
  const edit = async () => {
    await page.getByRole('button', { name: 'More actions for this run' }).click();
    await page.getByRole('menuitem', { name: 'Note and tags' }).click();
  };
  const tags = async () => (await (await page.request.get(`${base}/api/runs/${id}`)).json()).scenario_config.tags;
  await step('are edited as they are, not as the page has known them', async () => {
    await page.goto(`${base}/runs/${id}`);
    await page.getByRole('button', { name: 'More actions for this run' }).waitFor();
    await put('note', { text: 'theirs', version: 0 });
    await put('tags', { tags: { theirs: '1' } });
    await edit();
    assert.equal(await dialog.getByLabel('Note', { exact: true }).inputValue(), 'theirs');
    assert.equal(await dialog.getByLabel(/^Tags/).inputValue(), 'theirs:1');
  });
  await step('are not saved over what somebody else has written meanwhile, without a word', async () => {
    await put('tags', { tags: { theirs: '2' } });
    await put('note', { text: 'theirs anew', version: 1 });
    await dialog.getByLabel(/^Tags/).fill('mine:1');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.getByText('The tags of the run were changed by somebody else.').waitFor();
    assert.deepEqual(await tags(), { theirs: '2' });
    assert.equal(await dialog.getByLabel(/^Tags/).inputValue(), 'mine:1', 'what was typed');
    await dialog.getByLabel(/^Tags/).fill('mine:1\ntheirs:2');
    await dialog.getByRole('button', { name: 'Save' }).click();
    await dialog.waitFor({ state: 'detached' });
    assert.deepEqual(await tags(), { mine: '1', theirs: '2' });
    const note = await (await page.request.get(`${base}/api/runs/${id}/note`)).json();
    assert.equal(note.text, 'theirs anew', 'a note that was not touched');
  });
  assert.deepEqual(wrong, []);
});

test('what a chart is saved as', async (t) => {
  const { page, step, wrong } = await open(t);
  const id = await find(page, 'checkout peak', 'COMPLETED');
  await page.goto(`${base}/runs/${id}`);
  const saved = async (chart, item) => {
    await page.getByRole('button', { name: `More for ${chart}` }).click();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('menuitem', { name: item }).click(),
    ]);
    return file.path();
  };
  await step('a picture names its lines, in their colours', async () => {
    const bytes = await readFile(await saved('Latency percentiles', 'Save as PNG'));
    const seen = await page.evaluate(async (data) => {
      const image = await createImageBitmap(new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))]));
      const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height });
      const on = canvas.getContext('2d');
      on.drawImage(image, 0, 0);
      const drawn = [...document.querySelectorAll('.chart canvas')].map((c) => c.height);
      // The first swatch: in the legend line below the plot, at its left.
      const under = on.getImageData(12, canvas.height - 28, 14, 28).data;
      const colours = new Set();
      for (let i = 0; i < under.length; i += 4) colours.add([...under.slice(i, i + 3)].join());
      const style = getComputedStyle(document.documentElement);
      const hex = style.getPropertyValue('--p99').trim();
      return { height: image.height, drawn, colours: [...colours], hex };
    }, bytes.toString('base64'));
    const p99 = [1, 3, 5].map((i) => Number.parseInt(seen.hex.slice(i, i + 2), 16)).join();
    assert.ok(seen.colours.includes(p99), `no swatch of ${seen.hex} in ${seen.colours}`);
    assert.ok(!seen.drawn.includes(seen.height - 30), 'there is room for a legend');
  });
  await step('a heat map is its cells', async () => {
    const text = await readFile(await saved('Latency heat map', 'Save as CSV'), 'utf8');
    const [head, ...cells] = text.trim().split('\r\n');
    assert.equal(head, 'elapsed_seconds,time,from,to,operations');
    const seconds = new Set(cells.map((c) => c.split(',')[0]));
    assert.ok(cells.length > 2 * seconds.size, `${cells.length} cells of ${seconds.size} seconds`);
    for (const c of cells.map((l) => l.split(',').map(Number)))
      assert.ok(c[2] < c[3] && c[4] > 0, `no cell of a heat map: ${c}`);
  });
  assert.deepEqual(wrong, []);
});
