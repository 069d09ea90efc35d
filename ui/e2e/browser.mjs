import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const places = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/**
 * Starts the system's Chromium. LOADSTONE_CHROMIUM names another one. without are flags of Playwright's that it is
 * started without.
 */
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
