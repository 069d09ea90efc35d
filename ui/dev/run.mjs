// Runs one of the scripts here, which are TypeScript: node dev/run.mjs mock --port 8088. Vite, which is
// there for the page, compiles it.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const [script] = process.argv.splice(2, 1);
await runnerImport(fileURLToPath(new URL(`${script}.ts`, import.meta.url)), { configFile: false, logLevel: 'error' });
