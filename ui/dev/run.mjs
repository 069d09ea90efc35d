// Runs a TypeScript script of this folder, compiled by Vite: node dev/run.mjs mock --port 8088.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const [script] = process.argv.splice(2, 1);
await runnerImport(fileURLToPath(new URL(`${script}.ts`, import.meta.url)), { configFile: false, logLevel: 'error' });
