// The program, as `make build` makes it, lets users sign in by a real OpenID Connect provider; `make check-oidc` runs it.
// What only a hostile provider does is forged from that one's own tokens, so that each is wrong in one way.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { launch } from '../../ui/e2e/browser.mjs';
import { clientID, clientSecret, hs256, hs256Secret, rs256, startProvider, stranger, unsigned } from './provider.mjs';

const program = process.env.LOADSTONE_PROGRAM;
if (!program) throw new Error('LOADSTONE_PROGRAM names no program: make check-oidc does.');
const callback = '/api/auth/oidc/callback';

/** Starts a server that knows the provider. */
async function serve(idp, ...flags) {
  const data = mkdtempSync(join(tmpdir(), 'loadstone-oidc-'));
  const args = ['serve', '--data-dir', join(data, 'data'), '--listen', '127.0.0.1:0', '--calibrate', 'off'];
  args.push('--oidc-issuer', idp.issuer, '--oidc-client-id', clientID, '--oidc-name', 'Example', ...flags);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let log = '';
  child.stderr.on('data', (text) => (log += text));
  const ended = new Promise((done) => child.on('exit', done));
  const open = await new Promise((found, failed) => {
    child.stdout.on('data', (text) => {
      out += text;
      const link = /Open: *(\S+)/.exec(out);
      if (link) found(link[1]);
    });
    child.on('exit', () => failed(new Error(`the server ended before it was ready: ${log}`)));
  });
  const server = { base: new URL(open).origin, link: open, log: () => log };
  server.stop = async () => {
    child.kill('SIGTERM');
    await ended;
    rmSync(data, { recursive: true, force: true });
  };
  return server;
}

/** A client with the cookies of a browser, without its judgement of where they go. */
function client() {
  const jars = new Map();
  const jar = (url) => {
    const host = new URL(url).host;
    if (!jars.has(host)) jars.set(host, new Map());
    return jars.get(host);
  };
  const ask = async (url, options = {}) => {
    const cookie = [...jar(url)].map(([name, value]) => `${name}=${value}`).join('; ');
    const res = await fetch(url, { redirect: 'manual', ...options, headers: { cookie, ...options.headers } });
    for (const line of res.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line);
      if (value === '' || /max-age=0|expires=thu, 01 jan 1970/i.test(line)) jar(url).delete(name);
      else jar(url).set(name, value);
    }
    return res;
  };
  const cookies = (url) => jar(url);
  return { ask, cookies };
}

const local = (res, url) => new URL(res.headers.get('location'), url).href;

/** Goes from the button to where the provider sends the browser back to, without going there. */
async function until(server, who, name) {
  let url = `${server.base}/api/auth/oidc/start?next=/runs`;
  let res = await who.ask(url);
  for (let steps = 0; steps < 20; steps += 1) {
    if (res.status >= 300 && res.status < 400) {
      url = local(res, url);
      if (url.startsWith(server.base + callback)) return url;
      res = await who.ask(url);
      continue;
    }
    const page = await res.text();
    const action = /<form[^>]* action="([^"]+)"/.exec(page)?.[1];
    const prompt = /name="prompt" value="([^"]+)"/.exec(page)?.[1];
    assert.ok(action && prompt, `the provider shows ${res.status} ${page.slice(0, 300)}`);
    url = new URL(action, url).href;
    const body = new URLSearchParams(prompt === 'login' ? { prompt, login: name, password: 'any' } : { prompt });
    res = await who.ask(url, { method: 'POST', body });
  }
  throw new Error('the provider goes on for ever');
}

const hasSession = (res) => res.headers.getSetCookie().some((c) => /^(__Host-)?loadstone_session=[^;]/.test(c));

async function whole(server, who, name) {
  return who.ask(await until(server, who, name));
}

async function me(server, who) {
  const res = await who.ask(`${server.base}/api/auth/me`);
  assert.equal(res.status, 200);
  return res.json();
}

let idp, server, browser;
before(async () => {
  idp = await startProvider();
  idp.people = { ada: { groups: ['dba', 'staff'] }, mallory: { groups: ['dba'] }, eve: { groups: ['dba'] } };
  process.env.LOADSTONE_OIDC_CLIENT_SECRET = clientSecret;
  server = await serve(
    idp,
    '--oidc-role-map',
    'dba=operator',
    '--oidc-role-map',
    'root=admin',
    '--oidc-scopes',
    'profile,groups',
  );
  delete process.env.LOADSTONE_OIDC_CLIENT_SECRET;
  idp.redirect(server.base + callback);
  browser = await launch();
});
after(async () => {
  await browser?.close();
  await server?.stop();
  idp?.stop();
});

describe('in a browser', () => {
  /** Presses the button and does what the provider asks. */
  async function signsIn(page, name) {
    await page.getByRole('link', { name: 'Sign in with Example' }).click();
    await page.waitForURL(new RegExp(`^(${idp.issuer}|${server.base})/`));
    const login = page.locator('input[name=login]');
    if (
      await login.waitFor({ timeout: 5000 }).then(
        () => true,
        () => false,
      )
    ) {
      await login.fill(name);
      await page.locator('input[name=password]').fill('any');
      await page.getByRole('button', { name: 'Sign-in' }).click();
    }
    await page.locator('button', { hasText: 'Continue' }).click();
  }

  test('a group is a role, anew at each sign-in', async () => {
    const context = await browser.newContext();
    const page = await context.newPage();
    page.setDefaultTimeout(20_000);
    await page.goto(`${server.base}/settings`);
    await signsIn(page, 'ada');
    await page.waitForURL(`${server.base}/settings`);
    await page.getByText('An operator').first().waitFor();
    assert.equal((await page.request.get(`${server.base}/api/users`)).status(), 403);

    for (const [groups, says] of [
      [['staff', 'root', 'dba'], 'An admin'],
      ['dba', 'An operator'],
    ]) {
      idp.people.ada.groups = groups;
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('link', { name: 'Sign in with Example' }).click();
      await page.waitForURL(`${server.base}/**`);
      await page.goto(`${server.base}/settings`);
      await page.getByText(says).first().waitFor();
      assert.equal((await page.request.get(`${server.base}/api/users`)).status(), says === 'An admin' ? 200 : 403);
    }
    // Nobody's group any more: not let in, and told why.
    idp.people.ada.groups = ['staff'];
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByRole('link', { name: 'Sign in with Example' }).click();
    await page.getByText('which of your groups may').waitFor();
    assert.equal((await page.request.get(`${server.base}/api/auth/me`)).status(), 401);
    idp.people.ada.groups = ['dba'];
    await context.close();
  });
});

describe('forged ID tokens', () => {
  const past = Math.floor(Date.now() / 1000) - 3600;
  const own = (change) => (claims) => rs256(idp.keys(), { ...claims, ...change });
  for (const [what, forge] of Object.entries({
    'another issuer': own({ iss: 'https://login.example.com' }),
    'another audience': own({ aud: 'another' }),
    'two audiences, made for the other': own({ aud: [clientID, 'another'], azp: 'another' }),
    'another nonce': own({ nonce: 'of-another-flow' }),
    'no nonce': own({ nonce: undefined }),
    expired: own({ iat: past - 60, exp: past }),
    'no expiry': own({ exp: undefined }),
    'of the future': own({ iat: past + 7200, exp: past + 10_800 }),
    'nobody has signed it': (claims) => unsigned(claims),
    'HS256 with the public key, PEM': (claims) => hs256(idp.keys(), claims, 'pem'),
    'HS256 with the public key, DER': (claims) => hs256(idp.keys(), claims, 'der'),
    "HS256 with the client's secret": (claims) => hs256Secret(claims),
    'a key that is not published': (claims) => rs256(stranger, claims),
    'a key that is not published, by the name of one that is': (claims) => rs256(stranger, claims, idp.keys().jwk.kid),
  }))
    test(what, async () => {
      idp.forge = forge;
      try {
        const who = client();
        const res = await whole(server, who, 'mallory');
        assert.equal(res.status, 401, await res.text());
        assert.ok(!hasSession(res));
        assert.equal((await who.ask(`${server.base}/api/auth/me`)).status, 401);
      } finally {
        idp.forge = null;
      }
    });

  test('what nobody has changed is let in', async () => {
    idp.forge = (claims) => rs256(idp.keys(), claims);
    const who = client();
    const res = await whole(server, who, 'mallory');
    idp.forge = null;
    assert.equal(res.status, 303, await res.text());
    assert.equal((await me(server, who)).user.name, 'mallory');
  });
});

describe('returns', () => {
  test('once', async () => {
    const who = client();
    const back = await until(server, who, 'eve');
    const cookie = [...who.cookies(server.base)].map(([n, v]) => `${n}=${v}`).join('; ');
    const first = await who.ask(back);
    assert.ok(hasSession(first), await first.text());
    assert.equal(local(first, server.base), `${server.base}/runs`);
    // Again, with the cookie that the first return took away, and without it.
    for (const headers of [{ cookie }, {}]) {
      const res = await fetch(back, { redirect: 'manual', headers });
      assert.equal(res.status, 401);
      assert.ok(!hasSession(res));
    }
  });

  test("another's code is nobody's sign-in", async () => {
    const mallory = client();
    const stolen = new URL(await until(server, mallory, 'mallory')).searchParams.get('code');
    // A code that somebody slips into the return of a victim: PKCE and nonce belong to another flow.
    const victim = client();
    const back = new URL(await until(server, victim, 'eve'));
    back.searchParams.set('code', stolen);
    const res = await victim.ask(back.href);
    assert.equal(res.status, 401, await res.text());
    assert.ok(!hasSession(res));
  });

  test('a code that was used before', async () => {
    const who = client();
    const used = new URL(await until(server, who, 'eve'));
    assert.ok(hasSession(await who.ask(used.href)));
    const again = new URL(await until(server, who, 'eve'));
    again.searchParams.set('code', used.searchParams.get('code'));
    assert.equal((await who.ask(again.href)).status, 401);
  });

  test("another flow's state, another browser, another issuer", async () => {
    const who = client();
    const back = new URL(await until(server, who, 'eve'));
    const other = client();
    await until(server, other, 'eve');
    assert.equal((await other.ask(back.href)).status, 401);
    assert.equal((await client().ask(back.href)).status, 401);
    const elsewhere = new URL(back);
    elsewhere.searchParams.set('iss', 'https://login.example.com');
    assert.equal((await who.ask(elsewhere.href)).status, 401);
    // All is the flow's own but the state.
    const mixed = new URL(await until(server, who, 'eve'));
    mixed.searchParams.set('state', 'of-nobody');
    assert.equal((await who.ask(mixed.href)).status, 401);
  });

  test('the provider says no', async () => {
    const who = client();
    const state = new URL(
      (await who.ask(`${server.base}/api/auth/oidc/start`)).headers.get('location'),
    ).searchParams.get('state');
    const res = await who.ask(`${server.base}${callback}?error=access_denied&state=${state}`);
    assert.equal(res.status, 401);
  });
});

test('new keys of the provider are found', async () => {
  const old = idp.keys();
  idp.rotate();
  idp.redirect(server.base + callback);
  const who = client();
  assert.equal((await whole(server, who, 'eve')).status, 303);
  idp.forge = (claims) => rs256(old, claims);
  const res = await whole(server, client(), 'eve');
  idp.forge = null;
  assert.equal(res.status, 401, 'a key that was withdrawn');
});

test('a public client, and an ID token that says all', async () => {
  const second = await serve(idp, '--oidc-default-role', 'viewer', '--oidc-scopes', 'profile');
  try {
    idp.redirect(second.base + callback, {
      conforms: false,
      client: { client_secret: undefined, token_endpoint_auth_method: 'none' },
    });
    idp.people.visitor = { groups: [] };
    const who = client();
    assert.equal((await whole(second, who, 'visitor')).status, 303);
    assert.equal((await me(second, who)).user.role, 'viewer');
  } finally {
    await second.stop();
    idp.redirect(server.base + callback);
  }
});

test('nothing of a flow stands in the log', () => {
  for (const secret of [clientSecret, 'code_verifier', 'eyJ']) assert.ok(!server.log().includes(secret), secret);
});
