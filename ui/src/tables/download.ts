import { save } from '../charts/export';
import { sendForFile } from '../api/client';

/** download runs the query again into a file; true when rows were truncated. */
export async function download(sql: string, format: 'csv' | 'json' | 'parquet'): Promise<boolean> {
  const res = await sendForFile('/api/query/export', { sql, format, max_rows: 100_000 });
  save(`query.${format}`, await res.blob());
  return res.headers.get('X-Truncated') === 'true';
}
