import { expect, test } from 'vitest';
import { pricesByType, priceSource } from '../src/app/pricing';

test('a list says where it is from, and has its sizes by type', () => {
  expect(priceSource({ from: 'flag', file: '/etc/p.yaml' })).toContain('/etc/p.yaml (--prices)');
  expect(priceSource({ from: 'built_in', file: '' })).toContain('Bundled list prices');
  const w = (warehouse_type: string, warehouse_size: string, credits_per_hour: number) => ({
    warehouse_type,
    warehouse_size,
    credits_per_hour,
    minimum_seconds: 60,
  });
  const rows = pricesByType({ warehouses: [w('A', 'Small', 2), w('B', 'Small', 3), w('A', 'Large', 8)] });
  expect(rows.map(([t, s]) => [t, s.map((x) => x.warehouse_size)])).toEqual([
    ['A', ['Small', 'Large']],
    ['B', ['Small']],
  ]);
});
