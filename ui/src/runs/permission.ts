/** grant matches the GRANT statement in a fix. */
const grant = /GRANT .+? TO (?:ROLE )?"(?:[^"]|"")+"(?: COPY CURRENT GRANTS)?/;

/** splitFix splits a fix into text, statement and text. */
export function splitFix(fix: string): { before: string; sql: string; after: string } {
  const sql = grant.exec(fix)?.[0] ?? '';
  const at = sql ? fix.indexOf(sql) : fix.length;
  return { before: fix.slice(0, at).trim(), sql, after: fix.slice(at + sql.length).trim() };
}
