import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

// What reports are made of: one script and one style sheet, which server/api writes into each file.
export default defineConfig({
  plugins: [react()],
  publicDir: false,
  define: { 'process.env.NODE_ENV': '"production"' },
  build: {
    target: 'es2023',
    outDir: 'dist/report',
    emptyOutDir: true,
    cssCodeSplit: false,
    modulePreload: false,
    chunkSizeWarningLimit: 700,
    lib: {
      entry: 'src/report/main.tsx',
      formats: ['iife'],
      name: 'report',
      fileName: () => 'report.js',
      cssFileName: 'report',
    },
  },
});
