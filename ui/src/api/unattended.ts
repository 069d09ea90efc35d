/** awayAfterMs is how long the user does nothing before the page counts as left alone. */
const awayAfterMs = 5 * 60_000;
let lastActive = Date.now();
if (typeof window !== 'undefined')
  for (const event of ['pointerdown', 'pointermove', 'keydown', 'wheel'])
    window.addEventListener(event, () => (lastActive = Date.now()), { passive: true, capture: true });

/** unattended marks requests that the page makes by itself while its user is away: they keep no session alive. */
export function unattended(now = Date.now()): Record<string, string> {
  return now - lastActive > awayAfterMs ? { 'X-Loadstone-Unattended': '1' } : {};
}
