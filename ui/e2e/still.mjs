// A server that stands still: it refuses nothing, and answers nothing.
import assert from 'node:assert/strict';

const places = ['/tables', '/settings', '/history'];

/** Stops the process of a server, looks at pages that were open, and lets it go on. */
export async function noticesAServerThatStandsStill(context, server, base) {
  const pages = [];
  for (const path of places) {
    const page = await context.newPage();
    page.setDefaultTimeout(30_000);
    await page.goto(base + path);
    await page.locator('main h1').first().waitFor();
    pages.push(page);
  }
  const said = (page) => page.getByText('The server does not answer.').first();
  try {
    for (const page of pages) assert.equal(await said(page).count(), 0);
    server.kill('SIGSTOP');
    await Promise.all(pages.map((page) => said(page).waitFor()));
  } finally {
    server.kill('SIGCONT');
  }
  await Promise.all(pages.map((page) => said(page).waitFor({ state: 'detached' })));
  for (const page of pages) await page.close();
}
