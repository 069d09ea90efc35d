import type { PriceList, WarehousePrice } from '../api/types';

/** priceSource says where a price list comes from. */
export function priceSource(p: Pick<PriceList, 'from' | 'file'>): string {
  switch (p.from) {
    case 'flag':
      return `From the file ${p.file} (--prices).`;
    case 'file':
      return `From the file ${p.file} on the server.`;
    case 'saved':
      return 'Saved here';
    default:
      return 'Bundled list prices. Replace them with the prices of your contract.';
  }
}

/** pricesByType groups sizes by warehouse type, cheapest first. */
export function pricesByType(p: Pick<PriceList, 'warehouses'>): [string, WarehousePrice[]][] {
  const types = new Map<string, WarehousePrice[]>();
  for (const w of p.warehouses) types.set(w.warehouse_type, [...(types.get(w.warehouse_type) ?? []), w]);
  return [...types];
}
