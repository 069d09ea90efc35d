import { afterEach, describe, expect, it, vi } from 'vitest';
import { api } from '../src/api/client';
import { codePoints, maxTextLength, parseResponse, safeText, textSpans } from '../src/api/safeText';
import { followRun } from '../src/api/socket';

const hidden = /[\p{Cf}\p{Cs}\u034F\u115F\u1160\u17B4\u17B5\u2028\u2029\u3164\uFFA0]|(?![\n\t])\p{Cc}/u;

/** bad are all characters that reorder text, hide, or control. */
const bad = [
  ...Array.from({ length: 5 }, (_, i) => 0x202a + i),
  ...Array.from({ length: 4 }, (_, i) => 0x2066 + i),
  0x00,
  0x07,
  0x08,
  0x0d,
  0x1b,
  0x7f,
  0x80,
  0x9b,
  0xad,
  0x061c,
  0x180e,
  0x200b,
  0x200c,
  0x200d,
  0x200e,
  0x200f,
  0x2028,
  0x2029,
  0x2060,
  0x2064,
  0xfeff,
  0xfff9,
  0x3164,
  0xe0001,
  0xe0041,
  0x115f,
  0x034f,
].map((c) => String.fromCodePoint(c));

describe('texts of others', () => {
  it('show every character that turns or hides as what it is: something that is not to be read', () => {
    for (const c of bad) {
      const out = safeText(`pay${c}load`);
      expect(out, c.codePointAt(0)!.toString(16)).toBe('pay\uFFFDload');
      expect(out).not.toMatch(hidden);
    }
    expect(safeText(bad.join(''))).toBe('\uFFFD');
    expect(safeText('half a pair \uD83D')).toBe('half a pair \uFFFD');
    expect(safeText('a\r\nb\tc')).toBe('a\nb\tc');
  });
  it('are otherwise left as they are, in every script', () => {
    for (const text of [
      'Größe',
      'سلام دنیا',
      'می\u200Cخواهم',
      'क्\u200Dष',
      '数据库',
      '👩\u200D👩\u200D👧',
      '❤\uFE0F',
      'a\nb',
      '\uE000',
    ])
      expect(safeText(text)).toBe(text);
  });
  it('are cut when they are long, never within a character', () => {
    const out = safeText('x'.repeat(maxTextLength + 1234));
    expect(out).toBe(`${'x'.repeat(maxTextLength)}… (1,234 more characters)`);
    expect(safeText(`${'x'.repeat(9)}😀`, 10)).toBe(`${'x'.repeat(9)}… (2 more characters)`);
  });
  it('are so wherever they stand in an answer, names of fields included', () => {
    const text = JSON.stringify({
      runs: [
        {
          test_name: 'a\u202Eb',
          errors: { by_class: { 'c\u200Bd': 1 } },
          sql: 's'.repeat(9000),
          n: 1.5,
          no: null,
          is: true,
        },
      ],
    });
    expect(parseResponse(text)).toEqual({
      runs: [
        {
          test_name: 'a\uFFFDb',
          errors: { by_class: { 'c\uFFFDd': 1 } },
          sql: 's'.repeat(9000),
          n: 1.5,
          no: null,
          is: true,
        },
      ],
    });
    const named = parseResponse('{"__proto__": {"x": "\\u202e"}, "a": 1}') as object;
    expect(Object.getPrototypeOf(named)).toBe(Object.prototype);
    expect(Object.keys(named)).toEqual(['__proto__', 'a']);
  });
  it('stay as they are stored in a document that is edited and sent back, and only there', () => {
    const doc = {
      name: 'a\u202Eb',
      config: { name: 'a\u202Eb' },
      source: 'name: a\u202Eb',
      scenario_config: { tags: { k: '\u200B' } },
    };
    expect(parseResponse(JSON.stringify(doc), true)).toEqual({ ...doc, name: 'a\uFFFDb' });
    expect(JSON.stringify(parseResponse(JSON.stringify(doc)))).not.toMatch(hidden);
  });
});

describe('every way into the page', () => {
  afterEach(() => vi.unstubAllGlobals());
  const answer = (body: unknown, status = 200) =>
    vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(body), { status })));

  it('makes texts harmless: answers, refusals and the socket', async () => {
    answer({ name: 'x\u202Ey' });
    expect(await api.get('/api/info')).toEqual({ name: 'x\uFFFDy' });
    expect(await api.post('/api/auth/signout')).toEqual({ name: 'x\uFFFDy' });
    answer({ source: 'x\u202Ey', description: '\u2066' });
    expect(await api.get('/api/templates', { asStored: true })).toEqual({ source: 'x\u202Ey', description: '\uFFFD' });
    answer({ detail: 'no \u202Eno', hint: '\u200B', errors: [{ field: 'a', message: '\u2067' }] }, 422);
    await expect(api.get('/api/info')).rejects.toMatchObject({
      message: 'no \uFFFDno',
      hint: '\uFFFD',
      fields: [{ message: '\uFFFD' }],
    });
    vi.stubGlobal('addEventListener', () => {});
    vi.stubGlobal('removeEventListener', () => {});
    vi.stubGlobal('location', { protocol: 'http:', host: 'x' });
    const socket = { close: () => {} } as unknown as WebSocket;
    const seen: unknown[] = [];
    const stop = followRun('r', { onPayload: (p) => seen.push(p), onLink: () => {} }, () => socket);
    socket.onmessage!({
      data: JSON.stringify({ event: 'RUN_UPDATE', data: { test_name: 'x\u202Ey' } }),
    } as MessageEvent);
    stop();
    expect(seen).toEqual([{ test_name: 'x\uFFFDy' }]);
  });
});

describe('a text that is being edited', () => {
  const of = (text: string) => textSpans(text).map((s) => (s.isHidden ? `[${codePoints(s.text)}]` : s.text));
  it('is cut where a character is that nobody sees, and joined it is the text again', () => {
    expect(of('plain')).toEqual(['plain']);
    expect(of('a\u202eb\u2066\u200bc')).toEqual(['a', '[U+202E]', 'b', '[U+2066, U+200B]', 'c']);
    expect(of('\u001b[2J')).toEqual(['[U+001B]', '[2J']);
    for (const text of ['', 'a\u202eb', '\ufeff', 'x\u{e0041}y', '👩\u200d🚀', 'a\rb\r\nc\r'])
      expect(
        textSpans(text)
          .map((s) => s.text)
          .join(''),
      ).toBe(text);
  });
  it('keeps what harmless keeps: joiners of emoji, and ends of lines', () => {
    expect(of('👩\u200d🚀 a\r\nb\r')).toEqual(['👩\u200d🚀 a\r\nb\r']);
    expect(of('a\u200db')).toEqual(['a', '[U+200D]', 'b']);
    expect(of('a\rb')).toEqual(['a', '[U+000D]', 'b']);
  });
});
