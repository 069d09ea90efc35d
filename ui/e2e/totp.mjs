import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';

/** codeOf is the authenticator code periods of 30 s from now (RFC 6238). */
function codeOf(secret, periods = 0) {
  const bits = [...secret]
    .map((c) => 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'.indexOf(c).toString(2).padStart(5, '0'))
    .join('');
  const key = Buffer.from(bits.match(/.{8}/g).map((b) => parseInt(b, 2)));
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + periods));
  const mac = createHmac('sha1', key).update(counter).digest();
  const at = mac.at(-1) & 15;
  return String((mac.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, '0');
}

/** turnsASecondFactorOn enables it, signs in by code and by recovery code, and disables it. */
export async function turnsASecondFactorOn(page, base, name, password) {
  await page.goto(`${base}/settings/account`);
  const account = page.getByRole('region', { name: 'Your account' });
  await account.getByRole('button', { name: 'Turn on' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Password').fill('not the password');
  await dialog.getByRole('button', { name: 'Continue' }).click();
  await dialog.getByText('is not your password').waitFor();
  await dialog.getByLabel('Password').fill(password);
  await dialog.getByRole('button', { name: 'Continue' }).click();
  const picture = dialog.getByRole('img', { name: /QR code/ });
  await picture.waitFor();
  await picture.evaluate((i) => i.decode()); // fails for what cannot be drawn
  const secret = (await dialog.locator('code').innerText()).trim();
  await dialog.getByLabel('Code of your authenticator app').fill('000000');
  await dialog.getByRole('button', { name: 'Turn on' }).click();
  await dialog.getByText('type the six digits').waitFor();
  await dialog.getByLabel('Code of your authenticator app').fill(codeOf(secret));
  await dialog.getByRole('button', { name: 'Turn on' }).click();
  const codes = (await dialog.locator('pre.code').innerText()).trim().split('\n');
  assert.equal(codes.length, 10);
  await dialog.getByRole('button', { name: 'Done' }).click();
  await account.getByText('10 recovery codes left').waitFor();

  const signIn = async (code) => {
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Name', { exact: true }).fill(name);
    await page.getByLabel('Password', { exact: true }).fill(password);
    await page.getByRole('button', { name: 'Sign in', exact: true }).click();
    const step = page.getByRole('form', { name: 'Second factor' });
    await step.getByLabel('Code of your authenticator app').fill('not a code');
    await step.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('The code is wrong').waitFor();
    await step.getByLabel('Code of your authenticator app').fill(code);
    await step.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    await page.goto(`${base}/settings/account`);
  };
  await signIn(codeOf(secret, 1)); // that of now has confirmed
  await signIn(codes[0]);
  await account.getByText('9 recovery codes left').waitFor();
  await account.getByRole('button', { name: 'Turn off' }).click();
  await dialog.getByLabel('Password').fill(password);
  await dialog.getByLabel('Code of your authenticator app').fill(codes[1]);
  await dialog.getByRole('button', { name: 'Turn off' }).click();
  await account.getByText('Second factor: off').waitFor();
}
