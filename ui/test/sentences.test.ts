import { describe, expect, it } from 'vitest';
import { problemFrom, retryTime } from '../src/api/client';
import { asSentence, fieldProblemText, problemText, retryText, serverText } from '../src/design/sentences';

it('tells what a run has lost by the clock of who reads it', () => {
  const lost =
    'The server restarted; its executions from 2026-11-28T23:36:02.560Z to 2026-11-28T23:36:20.036Z are not recorded';
  expect(serverText(lost)).toMatch(
    /^The server restarted; its executions from \d\d:\d\d:02\.560 to \d\d:\d\d:20\.036 are not recorded$/,
  );
  const example = 'write it as 2026-11-28T23:36:02Z';
  expect(serverText(example)).toBe(example);
});

it('names the page’s own controls in place of flags', () => {
  const fix = 'allow it with --allow-writes, or target.allow_writes: true; or let the workload only read';
  expect(serverText(fix)).toBe(
    'allow it when “Start run” asks, or with “Writes to existing tables” in the template; ' +
      'or let the workload only read',
  );
  const line =
    'Set-up failed: The run writes to tables that Loadstone did not create: UPDATE in public.others, 5000 rows';
  const reason = `${line} target.allow_writes: is not set; ${line.slice(15)}; ${fix}.`;
  expect(serverText(reason)).toBe(`${line}. “Run again” asks whether it may.`);
  const p = problemFrom(
    422,
    JSON.stringify({
      detail: 'no',
      hint: fix,
      errors: [{ field: 'target.allow_writes', message: 'is not set', hint: fix }],
    }),
  );
  expect(p.hint + p.fields[0]!.hint).not.toContain('--allow-writes');
});

it('says what is wrong and what to do in two sentences', () => {
  expect(problemText({ message: 'There is no such run.', hint: 'it may have been deleted' })).toBe(
    'There is no such run. It may have been deleted.',
  );
  expect(problemText({ message: 'the run is RUNNING', hint: 'did you mean "x"?' })).toBe(
    'The run is RUNNING. Did you mean "x"?',
  );
  expect(problemText({ message: 'Nothing was measured.', hint: '' })).toBe('Nothing was measured.');
  expect(problemText({ message: 'It failed' })).toBe('It failed.');
  // A field name is followed by its sentence.
  expect(fieldProblemText({ message: 'is given, and the run brings its own', hint: 'leave it out' })).toBe(
    'is given, and the run brings its own. Leave it out.',
  );
  // Names keep their case, and multi-line database messages are unchanged.
  for (const name of [
    'workload.feed is empty.',
    'at_ms is no number.',
    'loadstone signin prints another.',
    'https://x.',
  ])
    expect(asSentence(name)).toBe(name);
  expect(asSentence('syntax error\nLINE 1: x')).toBe('syntax error\nLINE 1: x');
  expect(asSentence('it’s “so.”')).toBe('It’s “so.”');
  expect(asSentence()).toBe('');
});

describe('when a request that was refused for now can be repeated', () => {
  it('reads seconds and dates, and nothing else', () => {
    expect(retryTime('5', 1000)).toBe(6000);
    expect(retryTime('Thu, 01 Jan 1970 00:00:09 GMT', 1000)).toBe(9000);
    expect(retryTime(null, 1000)).toBe(0);
    expect(retryTime('soon', 1000)).toBe(0);
  });
  it('counts down to now', () => {
    expect(retryText(6000, 1000)).toBe('You can try again in 5 s.');
    expect(retryText(6000, 5999)).toBe('You can try again in 1 s.');
    expect(retryText(6000, 6000)).toBe('You can try again now.');
  });
});
