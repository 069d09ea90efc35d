// What remains of an ended session: nothing that Back finds. Playwright disables the back/forward cache; here it is on.
import assert from 'node:assert/strict';
import { launch } from './browser.mjs';
import { until } from './steps.mjs';

/** signsOutCleanly signs a user in, visits pages, signs out, and goes back. */
export async function signsOutCleanly(page, base) {
  const runs = await (await page.request.get(`${base}/api/runs?limit=1`)).json();
  const name = runs.runs[0].test_name;
  assert.ok(name, 'there is a run to be seen');
  const browser = await launch(['--disable-back-forward-cache']);
  try {
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
    const own = await context.newPage();
    own.setDefaultTimeout(20_000);
    const signIn = async () => {
      const made = await page.request.post(`${base}/api/auth/signin-links`, { data: {}, headers: { Origin: base } });
      await own.goto((await made.json()).url);
      await own.getByRole('heading', { name: 'Home' }).waitFor();
    };
    const form = () => own.getByRole('form', { name: 'Name and password' });
    const looks = async () => {
      await own.goto(`${base}/history`);
      await own.getByText(name).first().waitFor();
    };
    /** goesBack checks that the earlier content is never visible. */
    const goesBack = async (what) => {
      await own.goBack({ waitUntil: 'commit' });
      for (let i = 0; i < 5; i++) {
        const text = await own.evaluate(() => document.body?.innerText ?? '').catch(() => '');
        assert.ok(!text.includes(name), `${what}: Back shows ${text.slice(0, 300)}`);
      }
      await form().waitFor();
      assert.match(own.url(), /\/signin/);
    };
    const note = () =>
      own.addInitScript(() =>
        addEventListener('pageshow', (e) => e.persisted && sessionStorage.setItem('kept', 'yes')),
      );

    await note();
    await signIn();
    await looks();
    await own.goto(`${base}/api/docs`);
    await own.goBack();
    await own.getByText(name).first().waitFor();
    assert.equal(await own.evaluate(() => sessionStorage.getItem('kept')), 'yes', 'this browser keeps pages');

    await own.goto(`${base}/settings/account`);
    await own.getByRole('button', { name: 'Sign out' }).click();
    await form().waitFor();
    await goesBack('after signing out');

    // By a link of the page, without a reload.
    await signIn();
    await looks();
    await own.getByRole('link', { name: 'Templates' }).click();
    await own.getByRole('heading', { name: 'Templates' }).waitFor();
    await own.getByRole('button', { name: 'Sign out' }).click();
    await form().waitFor();
    await goesBack('after signing out on another page');

    // Cached, while another tab signs out.
    await signIn();
    await looks();
    await own.goto(`${base}/api/docs`);
    const other = await context.newPage();
    await other.goto(base);
    await other.getByRole('button', { name: 'Sign out' }).click();
    await other.getByRole('form', { name: 'Name and password' }).waitFor();
    await goesBack('after another tab has signed out');

    // The server does not end the session: the user is told.
    await signIn();
    await own.route('**/api/auth/signout', (r) => r.abort());
    await own.getByRole('button', { name: 'Sign out' }).click();
    await own.getByText('You are still signed in.').waitFor();
    await own.unroute('**/api/auth/signout');
    await own.getByRole('button', { name: 'Sign out' }).click();
    await form().waitFor();
    await until(
      async () => (await own.request.get(`${base}/api/auth/me`)).status(),
      (status) => status === 401,
      'the session has ended',
    );
  } finally {
    await browser.close();
  }
}
