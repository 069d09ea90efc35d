import { expect, test } from 'vitest';
import { splitFix } from '../src/runs/permission';

test.each([
  [
    'GRANT UPDATE, DELETE ON TABLE "D"."S"."T" TO ROLE "BENCH"',
    '',
    'GRANT UPDATE, DELETE ON TABLE "D"."S"."T" TO ROLE "BENCH"',
    '',
  ],
  ['GRANT CREATE ON SCHEMA "a" TO "Ann""s"', '', 'GRANT CREATE ON SCHEMA "a" TO "Ann""s"', ''],
  [
    'to be certain: GRANT SELECT ON TABLE "T" TO ROLE "R"',
    'to be certain:',
    'GRANT SELECT ON TABLE "T" TO ROLE "R"',
    '',
  ],
  [
    'set if_exists: use to keep it; or GRANT OWNERSHIP ON TABLE "T" TO ROLE "R" COPY CURRENT GRANTS',
    'set if_exists: use to keep it; or',
    'GRANT OWNERSHIP ON TABLE "T" TO ROLE "R" COPY CURRENT GRANTS',
    '',
  ],
  [
    'GRANT USAGE ON SCHEMA "s" TO ROLE "R", and look again',
    '',
    'GRANT USAGE ON SCHEMA "s" TO ROLE "R"',
    ', and look again',
  ],
  ['lower them, or raise the limit of the database', 'lower them, or raise the limit of the database', '', ''],
])('%s', (fix, before, sql, after) => {
  expect(splitFix(fix)).toEqual({ before, sql, after });
});
