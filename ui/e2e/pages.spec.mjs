// Every page and state on the mock server, in both themes and at three widths: no axe violation, no horizontal
// overflow, and a screenshot.
import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { accessible } from './axe.mjs';
import { onMock } from './mock.mjs';
import { opensStates } from './openStates.mjs';

const mock = onMock(8198);
const { base } = mock;
const shots = process.env.PAGES ?? 'e2e-pages';
mkdirSync(shots, { recursive: true });

const widths = [
  [2560, 1440],
  [1280, 900],
  [390, 844],
];

for (const theme of ['light', 'dark'])
  for (const [width, height] of widths)
    test(`pages, ${theme}, ${width} px`, { timeout: 900_000 }, async (t) => {
      const { page, step, wrong } = await mock.open(t, {
        signedIn: false,
        timeout: 15_000,
        viewport: { width, height },
        colorScheme: theme,
        reducedMotion: 'reduce',
      });
      // A rejected request appears in the browser's console as an error.
      const refused = new Set();
      page.on('response', (r) => r.status() >= 400 && refused.add(`${r.status()} ${new URL(r.url()).pathname}`));
      const shot = async (name) => {
        await accessible(page, name);
        assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), width, `${name} is too wide`);
        await page.screenshot({ path: join(shots, `${name.replaceAll(/\W+/g, '-')}-${theme}-${width}.png`) });
      };
      const find = (name, status) => mock.find(page, name, status);
      await page.goto(`${base}/signin?next=/`);
      await page.getByLabel('One-time sign-in link').waitFor();
      await step('sign-in', () => shot('sign-in'));
      await page.goto(`${base}/join?invitation=x&name=ada`);
      await page.getByLabel('New password').waitFor();
      await step('an invitation', () => shot('an invitation'));
      await mock.signIn(page);
      const { templates } = await (await page.request.get(`${base}/api/templates`)).json();
      const watched = templates.find((t) => t.name === 'watched by rules').template_id;
      for (const name of ['nightly pipeline', 'x'.repeat(100)])
        await page.request.post(`${base}/api/auth/tokens`, { data: { name, scope: 'run', expires_in_days: 7 } });
      const done = await find('first run');
      const live = await find('checkout peak', 'RUNNING');
      const open = async (path, text) => {
        await page.goto(base + path);
        // Hidden elements do not identify the page.
        await page.locator('main').getByText(text).filter({ visible: true }).first().waitFor();
      };
      const pages = [
        ['home', '/', 'Recent runs'],
        ['first steps', '/start', 'First steps'],
        ['templates', '/templates', 'first run'],
        ['the gallery', '/templates/gallery', 'Which'],
        ['a new template', '/templates/new', 'Workload'],
        ['template form', `/templates/${templates[0].template_id}`, 'Workload'],
        ['a template with rules', `/templates/${watched}`, 'Verdict'],
        ['template YAML', `/templates/${templates[0].template_id}?as=yaml`, 'Save'],
        ['live run', `/runs/${live}`, 'Latency heat map'],
        ['prepared run', `/runs/${await find('index rebuild')}`, 'This run would fail'],
        ['a run stopped by a rule', `/runs/${await find('stopped by a rule')}`, /Rule .slow. triggered/],
        ['failed run', `/runs/${await find('memory guard')}`, 'Guardrail triggered'],
        ...[
          ['overview', 'Latency heat map'],
          ['distribution', 'std dev'],
          ['kinds', 'Point lookup'],
          ['workers', 'worker-1'],
          ['errors', 'Error'],
          ['slowest', 'Slowest'],
          ['executions', 'Single executions'],
          ['accounting', 'Everything is accounted for'],
          ['environment', 'Environment'],
          ['log', 'Log'],
          ['export', 'Executions, CSV'],
        ].map(([tab, text]) => [`result, ${tab}`, `/runs/${done}?tab=${tab}`, text]),
        ['history', `/history?selected=${done}`, 'index rebuild'],
        [
          'a comparison',
          `/compare?runs=${done},${await find('orders under contention')},${await find('hybrid table')}`,
          'worse',
        ],
        ['a matrix', '/matrix/m-1', 'baseline'],
        ['a search', `/runs/${await find('limit of orders, five times')}`, '5 of 5 finished'],
        ['connections', '/connections', 'playground'],
        ['a new connection', '/connections?new=postgres', 'Test connection'],
        ['a new Snowflake connection', '/connections?new=snowflake', 'Test connection'],
        ['plugins', '/plugins', 'mix'],
        ['an uploaded plugin', '/plugins?plugin=counters@1.1.0', 'DELETE FROM counters'],
        ['a damaged plugin', '/plugins?plugin=counters@0.9.0', 'is damaged'],
        ['nodes', '/nodes', 'Unreachable'],
        ['tables', '/tables', 'Late'],
        ['a failed table', '/table/cost%20by%20%22size%22', 'no longer retries it'],
        ['a table not made yet', '/table/warehouse%20hours', 'No refresh yet'],
        ['a new table', '/tables/new', 'First 50 rows'],
        ['a query that is gone', '/query?saved=nobodys', 'There is no saved query'],
        ['a query', '/query?saved=P95%20by%20night', 'P95 by night'],
        ['Explore, nothing asked', '/explore', 'This run against the last ten'],
        ['Explore, curves', '/explore?q=sum(rate(loadstone_operations_total[5s]))', 'POINT_LOOKUP'],
        [
          'Explore, a heat map of runs',
          `/explore?view=heat&runs=${done}&q=sum(rate(loadstone_latency_seconds[5s]))`,
          'in a cell',
        ],
        ['Explore, a table and an error', '/explore?view=table&q=sum(rate(a', 'unclosed left parenthesis'],
        ['streams', '/streams', 'too_slow'],
        ['workers of streams', '/streams?show=workers', 'Draining'],
        ['a query that runs', '/streams?query=throughput&show=sinks', 'Live output'],
        ['a query whose sink waits', '/streams?query=worker_seconds', 'is tried again'],
        ['a query that failed', '/streams?query=busy_node&show=workers', 'Put that right'],
        ['a query that is stuck', '/streams?query=far_away', 'was lost'],
        ['a query that was dropped', '/streams?query=nobody', 'There is no query nobody'],
        ['the audit log', '/audit', 'connection.delete'],
        ['settings', '/settings', 'Your account'],
        ['settings, users', '/settings/users', 'grace@example.com'],
        ['settings, tokens', '/settings/tokens', 'nightly pipeline'],
        ...['notifications', 'links', 'prices', 'retention', 'server'].map((p) => [
          `settings, ${p}`,
          `/settings/${p}`,
          { links: 'Links to reports', server: 'This server' }[p] ?? p.charAt(0).toUpperCase() + p.slice(1),
        ]),
        ['no such page', '/nowhere', 'Page not found'],
      ];
      for (const [name, path, text] of pages)
        await step(name, async () => {
          await open(path, text);
          await shot(name);
        });
      const statements = page.getByRole('textbox', { name: /^Statements/ });
      await step('streams, an error under its place', async () => {
        await open('/streams', 'too_slow');
        await statements.fill('SHOW SINKS;\nSELEC x FROM worker_statistics');
        await statements.press('Control+Enter');
        await page.getByText('did you mean SELECT?').waitFor();
        await shot('streams, an error under its place');
      });
      await step('streams, an example explained', async () => {
        await page.getByRole('button', { name: /^Throughput of the whole cluster/ }).click();
        await page.getByRole('button', { name: 'Explain' }).click();
        await page.getByRole('group', { name: /^The plan/ }).waitFor();
        await shot('streams, an example explained');
      });
      if (width === 390)
        await step('the menu of a table stands beside its name, whatever its state', async () => {
          await open('/tables', 'Not built yet');
          for (const row of await page.locator('.derived tbody tr').all()) {
            const name = await row.locator('a.name').boundingBox();
            const menu = await row.locator('td.act button').boundingBox();
            const text = await row.innerText();
            assert.ok(menu.y < name.y + name.height, `the menu is below its name: ${text}`);
          }
        });
      await step('a dialog', async () => {
        await open(`/runs/${live}`, 'Latency heat map');
        await page.keyboard.press('?');
        await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor();
        await shot('a dialog');
        await page.keyboard.press('Escape');
      });
      await step('a menu', async () => {
        await page.getByRole('button', { name: 'More actions for this run' }).click();
        await page.getByRole('menu').waitFor();
        await shot('a menu');
        await page.keyboard.press('Escape');
      });
      await step('a chart that is read', async () => {
        await page.getByRole('application', { name: 'Latency percentiles' }).focus();
        await page.keyboard.press('Home');
        await shot('a chart that is read');
      });
      await opensStates({ page, base, open, shot, step, find, width, height });
      assert.deepEqual(wrong, []);
      assert.deepEqual([...refused].sort(), ['400 /prometheus/api/v1/query_events', '422 /api/v1/streams/statements']);
      // A list that fails to load: its error is a state, too.
      await step('what failed', async () => {
        await page.request.post(`${base}/mock/break`, { data: { prefix: '/api/templates' } });
        await page.goto(`${base}/templates`);
        await page.getByText('The templates could not be read.').waitFor();
        await shot('what failed');
        await page.request.post(`${base}/mock/break`, { data: { prefix: '' } });
      });
    });
