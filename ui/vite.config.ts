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
    // What every page begins with is one file: each request costs a page that is first opened more than its bytes.
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: 'shell', tags: ['$initial'] }] } } },
    chunkSizeWarningLimit: 500,
  },
  server: {
    proxy: {
      '/api': backend,
      '/prometheus': backend,
      '/ws': { target: backend.replace(/^http/, 'ws'), ws: true },
    },
  },
  // A limit for what hangs, not a measure: machines that test are busy.
  test: { include: ['test/**/*.test.ts'], testTimeout: 30_000 },
});
