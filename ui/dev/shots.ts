// Screenshots of every page from the mock server: npm run shots -- --out DIR [--only NAME].
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { launch } from '../e2e/browser.mjs';
import type { Run, Template } from '../src/api/types';

const { values: flags } = parseArgs({
  options: {
    out: { type: 'string', default: 'shots' },
    only: { type: 'string' },
    themes: { type: 'string', default: 'light,dark' },
    widths: { type: 'string', default: '1440,390' },
  },
});
mkdirSync(flags.out, { recursive: true });

async function mock(port: number, ...args: string[]): Promise<ChildProcess> {
  const child = spawn(
    process.execPath,
    [fileURLToPath(new URL('run.mjs', import.meta.url)), 'mock', '--port', String(port), ...args],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await new Promise((done) => child.stdout.once('data', done));
  return child;
}

const servers = [await mock(8191), await mock(8192, '--empty')];
const browser = await launch();
const problems: string[] = [];
try {
  const base = 'http://127.0.0.1:8191';
  const empty = 'http://127.0.0.1:8192';
  const first = await browser.newContext();
  await (await first.newPage()).goto(`${base}/signin?token=x`);
  const page = first.pages()[0]!;
  await page.waitForURL(`${base}/`);
  const { runs } = (await (await first.request.get(`${base}/api/runs?limit=200`)).json()) as { runs: Run[] };
  const id = (name: string, status?: Run['status']) =>
    runs.find((r) => r.test_name === name && (!status || r.status === status))?.run_id;
  const { templates } = (await (await first.request.get(`${base}/api/templates`)).json()) as { templates: Template[] };
  const template = templates[0]!.template_id;
  await first.close();
  const live = id('checkout peak', 'RUNNING');
  const done = id('first run');
  const bad = id('orders under contention');
  const searched = [id('limit of orders'), id('limit of orders, five times'), live, id('hybrid table')];
  const all: [name: string, base: string, path: string][] = [
    ['home', base, '/'],
    ['home-empty', empty, '/'],
    ['signin', base, '/signin?next=/'],
    ['templates', base, '/templates'],
    ['templates-empty', empty, '/templates'],
    ['template-form', base, `/templates/${template}`],
    ['template-yaml', base, `/templates/${template}?as=yaml`],
    ['template-new', base, '/templates/new'],
    ['run-live', base, `/runs/${live}`],
    ['run-prepared', base, `/runs/${id('index rebuild')}`],
    ['run-done', base, `/runs/${done}`],
    ...['distribution', 'kinds', 'accounting', 'environment', 'log', 'export', 'slowest', 'errors'].map(
      (t): [string, string, string] => [`run-${t}`, base, `/runs/${done}?tab=${t}`],
    ),
    ['run-degraded', base, `/runs/${bad}`],
    ['run-errors-bad', base, `/runs/${bad}?tab=errors`],
    ['run-failed', base, `/runs/${id('memory guard')}`],
    ['run-cancelled-gap', base, `/runs/${id('nightly insert')}`],
    ['run-unbalanced', base, `/runs/${id('lost records')}?tab=accounting`],
    ['find-max-live', base, `/runs/${id('limit, live')}`],
    ['find-max-done', base, `/runs/${id('limit of orders')}`],
    ['find-max-repeated', base, `/runs/${id('limit of orders, five times')}`],
    ['compare', base, `/compare?runs=${[done, id('checkout peak', 'COMPLETED'), bad].join(',')}`],
    ['compare-searches', base, `/compare?dist=below&runs=${searched.join(',')}`],
    ['compare-none', base, '/compare'],
    ['matrix-live', base, '/matrix/m-1'],
    ['matrix-none', base, '/matrix/nobody'],
    ['history-marked', base, `/history?selected=${done},${bad}`],
    ['history', base, '/history'],
    ['history-none', base, '/history?search=nothing-like-this'],
    ['connections', base, '/connections'],
    ['connection-new', base, '/connections?new=postgres'],
    ['plugins', base, '/plugins'],
    ['plugins-uploaded', base, '/plugins?plugin=counters@1.1.0'],
    ['plugins-damaged', base, '/plugins?plugin=counters@0.9.0'],
    ['plugins-adapter', base, '/plugins?plugin=postgres'],
    ...['0', '1', '3', '40'].map((n): [string, string, string] => [`nodes-${n}`, base, '/nodes']),
    ['tables', base, '/tables'],
    ['table', base, '/table/run_summary'],
    ['table-failed', base, '/table/cost%20by%20%22size%22'],
    ['table-new', base, '/tables/new'],
    ['table-edit-wrong', base, '/table/p95_by_night/edit'],
    ['query', base, '/query?q=SELECT%20*%20FROM%20run_summary'],
    ['query-chart', base, '/query?saved=P95%20by%20night'],
    ['query-rows', base, '/query'],
    ['settings', base, '/settings'],
    ['not-found', base, '/nowhere'],
  ];
  const list = all.filter(([name]) => !flags.only || new RegExp(flags.only).test(name));
  for (const theme of flags.themes.split(',')) {
    for (const width of flags.widths.split(',').map(Number)) {
      const ctx = await browser.newContext({
        viewport: { width, height: width < 600 ? 844 : 900 },
        colorScheme: theme as 'light' | 'dark',
        deviceScaleFactor: 1,
        isMobile: width < 600,
        hasTouch: width < 600,
      });
      const p = await ctx.newPage();
      let where = '';
      p.on(
        'console',
        (m) => (m.type() === 'error' || m.type() === 'warning') && problems.push(`${where}: ${m.text()}`),
      );
      p.on('pageerror', (e) => problems.push(`${where}: ${e.message}`));
      for (const b of [base, empty]) {
        await p.goto(`${b}/signin?token=x`);
        await p.waitForURL(`${b}/`);
      }
      for (const [name, b, path] of list) {
        where = `${name} ${theme} ${width}`;
        const nodes = /^nodes-(\d+)$/.exec(name)?.[1];
        if (nodes) await ctx.request.post(`${b}/mock/nodes`, { data: { count: Number(nodes) } });
        await p.goto(b + path);
        if (/^query-/.test(name)) {
          await p.waitForTimeout(300);
          await p.getByRole('button', { name: 'Run', exact: true }).click();
        }
        await p.waitForTimeout(name === 'run-live' ? 2600 : 700);
        const wide = await p.evaluate(() => document.documentElement.scrollWidth);
        if (wide > width) problems.push(`${where}: the page is ${wide} px wide`);
        await p.screenshot({ path: `${flags.out}/${name}-${theme}-${width}.png`, fullPage: true });
      }
      await ctx.close();
    }
  }
} finally {
  await browser.close();
  for (const s of servers) s.kill();
}
console.log([...new Set(problems)].join('\n') || 'no console errors');
