/** A GRANT within a fix: the statement that whoever owns the database executes. */
const grant = /GRANT .+? TO (?:ROLE )?"(?:[^"]|"")+"(?: COPY CURRENT GRANTS)?/;

/** Takes what a check says to do apart: words, the statement in it, words. */
export function statementIn(fix: string): { before: string; sql: string; after: string } {
  const sql = grant.exec(fix)?.[0] ?? '';
  const at = sql ? fix.indexOf(sql) : fix.length;
  return { before: fix.slice(0, at).trim(), sql, after: fix.slice(at + sql.length).trim() };
}
