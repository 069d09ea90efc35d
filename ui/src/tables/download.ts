import { save } from '../charts/export';
import { sendForFile } from '../api/client';

/** Has the query executed once more, into a file. It is true when there were more rows than a file has. */
export async function download(sql: string, format: 'csv' | 'json' | 'parquet'): Promise<boolean> {
  const res = await sendForFile('/api/query/export', { sql, format, max_rows: 100_000 });
  save(`query.${format}`, await res.blob());
  return res.headers.get('X-Truncated') === 'true';
}
