import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';

const backend = process.env.LOADSTONE_URL ?? 'http://127.0.0.1:8088';

export default defineConfig({
  plugins: [react()],
  build: {
    target: 'es2023',
    // The page's policy allows no data: addresses, so every asset is a file.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    chunkSizeWarningLimit: 300,
  },
  server: {
    proxy: {
      '/api': backend,
      '/prometheus': backend,
      '/ws': { target: backend.replace(/^http/, 'ws'), ws: true },
    },
  },
  test: { include: ['test/**/*.test.ts'] },
});
