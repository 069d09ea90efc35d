import type { PriceList, WarehousePrice } from '../api/types';

/** Where a list is from, as a sentence. */
export function whence(p: Pick<PriceList, 'from' | 'file'>): string {
  switch (p.from) {
    case 'flag':
      return `From the file ${p.file}, which the server was started with (--prices).`;
    case 'file':
      return `From the file ${p.file} on the server.`;
    case 'saved':
      return 'Saved here';
    default:
      return 'List prices that come with Loadstone: put those of your contract in.';
  }
}

/** The sizes of each type of warehouse, from cheap to dear. */
export function byType(p: Pick<PriceList, 'warehouses'>): [string, WarehousePrice[]][] {
  const types = new Map<string, WarehousePrice[]>();
  for (const w of p.warehouses) types.set(w.warehouse_type, [...(types.get(w.warehouse_type) ?? []), w]);
  return [...types];
}
