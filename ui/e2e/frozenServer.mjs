// A frozen server: it accepts connections and never responds.
import assert from 'node:assert/strict';

/** places are pages with a socket, with polling, and with neither. */
async function places(context, base) {
  const { runs } = await (await context.request.get(`${base}/api/runs?limit=200`)).json();
  const of = (status) => runs.filter((r) => r.status === status && r.template_id).map((r) => r.run_id);
  const [live, [a, b]] = [of('RUNNING')[0], of('COMPLETED')];
  const paths = [
    '',
    'history',
    'tables',
    'settings',
    'nodes',
    'connections',
    'templates/new',
    'query',
    'explore',
    'streams',
  ];
  return [
    ...paths.map((p) => `/${p}`),
    `/runs/${live}`,
    `/runs/${a}`,
    `/runs/${a}?tab=executions`,
    `/history?template=${runs.find((r) => r.run_id === a).template_id}`,
    `/compare?runs=${a},${b}`,
  ];
}

/** detectsAFrozenServer stops the server process, checks open pages, and continues it. */
export async function detectsAFrozenServer(context, server, base) {
  const pages = [];
  for (const path of await places(context, base)) {
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    await page.goto(base + path);
    await page.locator('main h1').first().waitFor();
    pages.push(page);
  }
  const banner = (page) => page.getByText('The server does not answer.').first();
  try {
    for (const page of pages) assert.equal(await banner(page).count(), 0);
    server.kill('SIGSTOP');
    await Promise.all(
      pages.map((page) =>
        banner(page)
          .waitFor()
          .catch((err) => assert.fail(`${page.url()} says nothing: ${err.message}`)),
      ),
    );
  } finally {
    server.kill('SIGCONT');
  }
  await Promise.all(pages.map((page) => banner(page).waitFor({ state: 'detached' })));
  for (const page of pages) await page.close();
}
