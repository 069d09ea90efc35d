// The mock's price list: two warehouse types of the bundled list.
import type { PriceList } from '../src/api/types';

const sizes = ['X-Small', 'Small', 'Medium', 'Large', 'X-Large', '2X-Large', '3X-Large', '4X-Large'];
const text =
  'currency: USD\ncredit_price: 3.00\nwarehouses:\n  STANDARD:\n    credits_per_hour: {X-Small: 1, Small: 2}\n';

export const prices: PriceList = {
  text,
  built_in: text,
  from: 'built_in',
  file: '',
  version: 0,
  updated_by: '',
  updated_at: null,
  problem: '',
  currency: 'USD',
  credit_price: 3,
  warehouses: ['INTERACTIVE', 'STANDARD'].flatMap((warehouse_type) =>
    sizes.map((warehouse_size, i) => ({
      warehouse_type,
      warehouse_size,
      credits_per_hour: (warehouse_type === 'STANDARD' ? 1 : 0.6) * 2 ** i,
      minimum_seconds: warehouse_type === 'STANDARD' ? 60 : 3600,
    })),
  ),
};
