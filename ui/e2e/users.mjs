import assert from 'node:assert/strict';
import { turnsASecondFactorOn } from './totp.mjs';

/**
 * invitesAViewer invites a viewer, who sets a password, can only read, and was disabled. looks gets the viewer's page.
 */
export async function invitesAViewer(page, browser, base, looks) {
  const name = `viewer${Date.now()}@example.com`;
  const secret = 'four words do well';
  await page.goto(`${base}/settings/users`);
  const panel = page.getByRole('region', { name: 'Users' });
  await panel.getByRole('button', { name: 'Invite a user' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name').fill('two words');
  await dialog.getByRole('radio', { name: /^Viewer/ }).check();
  await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
  await dialog.getByText('letters, digits').first().waitFor();
  await dialog.getByLabel('Name').fill(name);
  await dialog.getByRole('button', { name: 'Invite', exact: true }).click();
  const link = (await dialog.locator('pre.code').innerText()).trim();
  await dialog.getByRole('button', { name: 'Done' }).click();
  const row = panel.getByRole('row').filter({ hasText: name });
  await row.getByText('has not signed in yet').waitFor();

  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  try {
    const own = await context.newPage();
    own.setDefaultTimeout(20_000);
    await own.goto(link);
    await own.getByText(name).waitFor();
    await own.getByLabel('New password').fill('short');
    await own.getByText('7 more characters').waitFor();
    await own.getByLabel('New password').fill(secret);
    await own.getByRole('button', { name: 'Set the password and sign in' }).click();
    await own.getByRole('heading', { name: 'Home' }).waitFor();
    assert.ok(!own.url().includes('invitation'), 'the invitation must leave the address bar');
    assert.equal(await own.getByRole('link', { name: 'New template' }).count(), 0, 'a viewer is offered no template');
    const refused = await own.request.post(`${base}/api/runs`, { data: { template_name: 'x' } });
    assert.equal(refused.status(), 403);
    await looks(own);
    await own.goto(`${base}/settings/users`);
    await own.getByText('Viewer: reads everything').waitFor();
    assert.equal(await own.getByRole('region', { name: 'Users' }).count(), 0, 'users are for admins');
    await own.getByRole('button', { name: 'Sign out' }).click();
    await own.getByLabel('Name', { exact: true }).fill(name.toUpperCase());
    await own.getByLabel('Password', { exact: true }).fill('not the password');
    await own.getByRole('button', { name: 'Sign in', exact: true }).click();
    await own.getByText('no user with this name and password').waitFor();
    await own.getByLabel('Password', { exact: true }).fill(secret);
    await own.getByRole('button', { name: 'Sign in', exact: true }).click();
    await own.getByRole('heading', { name: 'Home' }).waitFor();

    await turnsASecondFactorOn(own, base, name, secret);

    await page.reload();
    await row.getByText('signs in with a password').waitFor();
    await row.getByRole('button', { name: `Disable ${name}` }).click();
    await row.getByText('disabled').waitFor();
    await own.reload();
    await own.getByRole('form', { name: 'Name and password' }).waitFor();
  } finally {
    await context.close();
  }
  await row.getByRole('button', { name: `Delete ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete user' }).click();
  await row.waitFor({ state: 'detached' });
}
