// A real OpenID Connect provider on loopback, npm's oidc-provider, that a test can make say untrue things: it signs
// what a hostile or a mistaken one would, with its own keys.
import { createHmac, createPublicKey, generateKeyPairSync, randomUUID, sign } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import Provider from 'oidc-provider';

export const clientID = 'loadstone';
export const clientSecret = 'a secret that only the two of them know';

const encoded = (value) => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
const decoded = (part) => JSON.parse(Buffer.from(part, 'base64url'));

function keyPair() {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
  return { privateKey, jwk: { ...privateKey.export({ format: 'jwk' }), kid: randomUUID(), use: 'sig', alg: 'RS256' } };
}

/** An ID token of these claims, signed with RS256 by a key that may be another than its header names. */
export function rs256({ privateKey, jwk }, claims, kid = jwk.kid) {
  const text = `${encoded({ alg: 'RS256', typ: 'JWT', kid })}.${encoded(claims)}`;
  return `${text}.${sign('sha256', Buffer.from(text), privateKey).toString('base64url')}`;
}

/** One that nobody has signed. */
export const unsigned = (claims) => `${encoded({ alg: 'none', typ: 'JWT' })}.${encoded(claims)}.`;

/** One that everybody can sign who has read the provider's keys, where the key decides the algorithm. */
export function hs256({ privateKey, jwk }, claims, form) {
  const text = `${encoded({ alg: 'HS256', typ: 'JWT', kid: jwk.kid })}.${encoded(claims)}`;
  const key = createPublicKey(privateKey).export({ type: 'spki', format: form });
  return `${text}.${createHmac('sha256', key).update(text).digest('base64url')}`;
}

/** One that is signed with what only client and provider know, which other clients' provider may take for good. */
export function hs256Secret(claims) {
  const text = `${encoded({ alg: 'HS256', typ: 'JWT' })}.${encoded(claims)}`;
  return `${text}.${createHmac('sha256', clientSecret).update(text).digest('base64url')}`;
}

export const stranger = keyPair();

/**
 * Starts the provider. It knows one client, once redirect() has said where it lives. people are the claims by the name
 * that signs in; forge, unless null, makes another ID token of the claims of the true one.
 */
export async function startProvider() {
  let keys = keyPair();
  let answer = (_req, res) => res.writeHead(503).end();
  const server = createServer((req, res) => answer(req, res)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const idp = {
    // Another site than the server's 127.0.0.1, as in life: what the browser keeps for one it does not send to the other.
    issuer: `http://localhost:${server.address().port}`,
    people: {},
    forge: null,
    keys: () => keys,
    redirect(address, more = {}) {
      const provider = new Provider(idp.issuer, {
        clients: [{ client_id: clientID, client_secret: clientSecret, redirect_uris: [address], ...more.client }],
        // userinfo says the rest, as the standard has it; or the ID token says all, as many do.
        conformIdTokenClaims: more.conforms ?? true,
        claims: { openid: ['sub'], profile: ['preferred_username'], groups: ['groups'] },
        jwks: { keys: [keys.jwk] },
        cookies: { keys: [randomUUID()] },
        pkce: { required: () => true },
        findAccount: (_ctx, sub) =>
          idp.people[sub] && { accountId: sub, claims: () => ({ sub, preferred_username: sub, ...idp.people[sub] }) },
      });
      provider.on('server_error', (_ctx, err) => console.error('provider:', err));
      provider.use(async (ctx, next) => {
        await next();
        if (ctx.oidc?.route !== 'token' || !ctx.body?.id_token || !idp.forge) return;
        ctx.body.id_token = idp.forge(decoded(ctx.body.id_token.split('.')[1]));
      });
      answer = provider.callback();
    },
    /** New keys: what was signed by the old ones is worth nothing any more. */
    rotate: () => void (keys = keyPair()),
    stop: () => {
      server.closeAllConnections();
      server.close();
    },
  };
  return idp;
}
