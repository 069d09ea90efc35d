import { read } from '../api/harmless';
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

/** What stands in the file of a report; server/handout writes it. */
export interface Content {
  version: string;
  made_at: string;
  run: RunDetail;
  /** What was written about the run. */
  note: string;
  /** What users have marked. */
  marks: Mark[];
  left_out: string[];
  resolution_seconds: number;
  points: Point[] | null;
  worker_points: WorkerPoint[];
  /** Null where the run was not taken in yet. */
  kinds: KindCurves | null;
  logs: LogEntry[] | null;
  warehouse: { resolution_seconds: number; points: WarehousePoint[] | null; slots: WarehouseSlot[] | null } | null;
}

/** What stands in the file of a comparison. */
export interface Together {
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

/** Unpacks base64 of compressed JSON; texts of others come out harmless. */
export async function unpacked(text: string): Promise<Content | Together> {
  const packed = Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  return read(await new Response(stream).text()) as Content | Together;
}
