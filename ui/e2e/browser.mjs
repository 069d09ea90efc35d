import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** launch starts the system's Chromium, or LOADSTONE_CHROMIUM. without lists Playwright flags to omit. */
export function launch(without = []) {
  const executablePath = process.env.LOADSTONE_CHROMIUM ?? places.find((p) => existsSync(p));
  if (!executablePath)
    throw new Error(
      'Chromium was not found: install it (Debian: apt-get install chromium), or name it in LOADSTONE_CHROMIUM.',
    );
  return chromium.launch({
    executablePath,
    headless: true,
    ignoreDefaultArgs: without,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}
