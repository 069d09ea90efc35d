import type { Plugin } from '../src/api/types';

export const plugins: Plugin[];
