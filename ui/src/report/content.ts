import { parseResponse } from '../api/safeText';
import type {
  Comparison,
  KindCurves,
  LogEntry,
  Mark,
  PartComparison,
  Point,
  RunDetail,
  WarehousePoint,
  WarehouseSlot,
  WorkerPoint,
} from '../api/types';

/** RunContent is the data in a report file; the server writes it. */
export interface RunContent {
  version: string;
  made_at: string;
  run: RunDetail;
  /** The note of the run. */
  note: string;
  /** The users' marks. */
  marks: Mark[];
  left_out: string[];
  resolution_seconds: number;
  points: Point[] | null;
  worker_points: WorkerPoint[];
  /** Null before the run was ingested. */
  kinds: KindCurves | null;
  logs: LogEntry[] | null;
  warehouse: { resolution_seconds: number; points: WarehousePoint[] | null; slots: WarehouseSlot[] | null } | null;
}

/** ComparisonContent is the data in a comparison file. */
export interface ComparisonContent {
  version: string;
  made_at: string;
  tolerance_pct: number;
  left_out: string[];
  compared: {
    run: RunDetail;
    resolution_seconds: number;
    points: Point[] | null;
    against: Comparison | null;
    parts: PartComparison | null;
  }[];
}

/** unpack decodes base64 of compressed JSON and makes untrusted text safe. */
export async function unpack(text: string): Promise<RunContent | ComparisonContent> {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return parseResponse(await new Response(stream).text()) as RunContent | ComparisonContent;
}
