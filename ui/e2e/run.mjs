// Drives the page in Chromium:
//   npm run e2e -- --base-url http://127.0.0.1:8080 --token TOKEN   the journey on a real server
//     and --plugin COUNTERS.wasm, examples/plugins/counters, for the journey of its author, --receiver URL, to
//     which the server sends metrics by remote-write (receiver.mjs)
//   the same with --smoke                                          a short one, in a minute at most
//   npm run e2e -- --mock                                          the states and pages, on the mock server (needs
// npm run build); pictures of the pages come to e2e-pages
import { spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const { values: flags } = parseArgs({
  options: {
    'base-url': { type: 'string' },
    token: { type: 'string' },
    out: { type: 'string', default: 'e2e-failures' },
    plugin: { type: 'string' },
    receiver: { type: 'string' },
    mock: { type: 'boolean', default: false },
    smoke: { type: 'boolean', default: false },
  },
});
if (!flags.mock && !(flags['base-url'] && flags.token)) {
  console.error(
    'The journey needs --base-url and --token, the token of a one-time sign-in link; or --mock for the ' +
      'states on the mock server.',
  );
  process.exit(1);
}
const files = (
  flags.mock
    ? [
        'states.spec.mjs',
        'runs.spec.mjs',
        'shortWays.spec.mjs',
        'queries.spec.mjs',
        'editing.spec.mjs',
        'keys.spec.mjs',
        'badtext.spec.mjs',
        'memory.spec.mjs',
        'pages.spec.mjs',
      ]
    : [flags.smoke ? 'smoke.spec.mjs' : 'journey.spec.mjs']
).map((f) => fileURLToPath(new URL(f, import.meta.url)));
const child = spawn(process.execPath, ['--test', '--test-reporter=spec', '--test-concurrency=1', ...files], {
  stdio: 'inherit',
  env: {
    ...process.env,
    BASE_URL: flags['base-url'] ?? '',
    SIGNIN_TOKEN: flags.token ?? '',
    SHOTS: flags.out,
    PLUGIN_FILE: flags.plugin ?? '',
    RECEIVER_URL: flags.receiver ?? '',
  },
});
child.on('exit', (code) => process.exit(code ?? 1));
