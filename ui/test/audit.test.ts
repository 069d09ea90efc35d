import { expect, it } from 'vitest';
import { stopResult } from '../src/app/StopAll';
import { spanStart } from '../src/audit/AuditPage';

it('says what came of stopping everything', () => {
  expect(stopResult({ here: [], elsewhere: [], store_answered: true })).toEqual({
    text: 'No run was active.',
    ok: true,
  });
  expect(stopResult({ here: [{}], elsewhere: [{}, { error: 'x' }], store_answered: true })).toEqual({
    text: '2 runs stopping. 1 run could not be reached.',
    ok: false,
  });
  const away = stopResult({ here: [{}], elsewhere: [], store_answered: false });
  expect(away.ok).toBe(false);
  expect(away.text).toContain('1 run stopping. The control store does not answer');
});

it('reads from a whole minute, so that the question stays the same', () => {
  const at = Date.parse('2026-01-08T12:00:59.999Z');
  expect(spanStart('7', at)).toBe('2026-01-01T12:00:00.000Z');
  expect(spanStart('', at)).toBeUndefined();
  expect(spanStart('x', at)).toBeUndefined();
});
