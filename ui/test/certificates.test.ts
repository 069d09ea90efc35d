import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { createElement } from 'react';
import { renderToStaticMarkup } from 'react-dom/server';
import { Problem } from '../src/api/client';
import { describe, expect, it } from 'vitest';
import { parseResponse } from '../src/api/safeText';
import { CertificateFields } from '../src/connections/CertificateFields';
import { certificateProblems, formProblem, fromUrl, noParts, shortDsn, toUrl } from '../src/connections/dsn';

const pem = (what: string) => `-----BEGIN ${what}-----\nMIIB+/ab==\ncd\n-----END ${what}-----\n`;
const certificates = { sslrootcert: pem('CERTIFICATE'), sslcert: pem('CERTIFICATE'), sslkey: pem('PRIVATE KEY') };
const parts = {
  ...noParts,
  host: 'db',
  database: 'd',
  user: 'u',
  password: 'p',
  sslmode: 'verify-full',
  ...certificates,
};

describe('pasted certificates', () => {
  it('survive the form byte for byte, without a + that could be a space', () => {
    const url = toUrl(parts);
    expect(url).not.toContain('+');
    expect(fromUrl(url)).toEqual(parts);
    expect(new URL(url).searchParams.get('sslkey')).toBe(certificates.sslkey);
  });
  it('are kept behind the mask, replaced and removed', () => {
    const saved = fromUrl(toUrl({ ...parts, sslkey: '***', password: '***' }))!;
    expect(saved).toMatchObject({ sslkey: '***', sslcert: certificates.sslcert });
    expect(toUrl(saved)).toContain('sslkey=***');
    expect(toUrl({ ...saved, sslcert: '', sslkey: '' })).not.toMatch(/sslcert|sslkey/);
  });
  it('leave what is no certificate to the URL', () => {
    expect(fromUrl('postgres://u@h/d?sslrootcert=system')).toMatchObject({
      sslrootcert: '',
      rest: 'sslrootcert=system',
    });
    expect(toUrl(fromUrl('postgres://u@h:5432/d?sslrootcert=system&sslmode=verify-full')!)).toContain(
      'sslrootcert=system',
    );
  });
  it('are not cut on their way to the form, and only named in a list', () => {
    const long = toUrl({ ...parts, sslrootcert: pem('CERTIFICATE').repeat(100) });
    expect(parseResponse(JSON.stringify({ dsn: long }))).toEqual({ dsn: long });
    expect(shortDsn(toUrl(parts))).toBe(
      'postgres://u:p@db:5432/d?sslmode=verify-full&sslrootcert=(pasted)&sslcert=(pasted)&sslkey=(pasted)',
    );
    expect(shortDsn("host=db sslrootcert='-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----' user=u")).toBe(
      'host=db sslrootcert=(pasted) user=u',
    );
    expect(shortDsn('postgres://u:***@h/d?sslkey=***')).toBe('postgres://u:***@h/d?sslkey=***');
  });
  it('show the server’s complaint under their field', () => {
    const wrong = [
      {
        field: 'dsn',
        message: 'The parameter sslkey cannot be used: it is encrypted; paste it without its passphrase.',
        hint: 'Paste the whole PEM text.',
      },
      { field: 'name', message: 'is taken' },
    ];
    expect(certificateProblems(wrong)).toEqual({
      sslkey: 'it is encrypted; paste it without its passphrase. Paste the whole PEM text.',
    });
    const other = { field: 'dsn', message: 'The parameter sslkey cannot be used: it is not the key of sslcert.' };
    expect(certificateProblems([other]).sslkey).toBe('it is not the key of “Client certificate”.');
    const asked = formProblem(new Problem(422, 'x', 'It asks for one.', 'Give sslcert and sslkey: the PEM texts.'));
    expect(asked.hint).toBe('Give “Client certificate” and “Key of the client certificate”: the PEM texts.');
    expect(certificateProblems([{ field: 'dsn', message: 'The parameter hostaddr is not allowed.' }])).toEqual({});
    const html = renderToStaticMarkup(
      createElement(
        QueryClientProvider,
        { client: new QueryClient() },
        createElement(CertificateFields, { parts, saved: null, wrong, onChange: () => {} }),
      ),
    );
    expect(html.match(/class="problem" role="alert">it is encrypted/g)).toHaveLength(1);
    expect(html.match(/aria-invalid/g)).toHaveLength(1);
  });
  it('never show what is saved', () => {
    const saved = { ...certificates, sslkey: '***' };
    const html = renderToStaticMarkup(
      createElement(CertificateFields, { parts: saved, saved, wrong: [], onChange: () => {} }),
    );
    expect(html).not.toMatch(/BEGIN|MIIB|textarea/);
    expect(html.match(/>saved</g)).toHaveLength(3);
  });
});

describe('an address in which it cannot be told where the password ends', () => {
  it.each([
    'postgres://ada:p@ss@host/db',
    'postgres://ada:p/ss@host/db',
    'postgres://ada:12/ss@host/db',
    'postgres://ada:p?ss@host/db',
    'postgres://ada:p#ss@host/db',
    'postgres://ada:p@host/db@ss',
    'postgres://ada:p@ss?x=y@host/db',
    'postgres://host:5432/db?password=p@ss',
  ])('%s is shown in no field', (text) => {
    expect(fromUrl(text)).toBeNull();
  });
  it.each([
    'postgres://ada:p%40ss@host/db',
    'postgres://ada@host/db',
    'postgres://host:5432/db',
    'postgres://ada:a:b@h/d',
  ])('%s is shown', (text) => {
    expect(fromUrl(text)).not.toBeNull();
  });
  it('is written with %40 by the fields', () => {
    const url = toUrl({ ...noParts, host: 'h', user: 'a@b', password: 'p@/?#:%' });
    expect(fromUrl(url)).toMatchObject({ host: 'h', user: 'a@b', password: 'p@/?#:%' });
  });
});
