import { api, asProblem, Problem } from '../api/client';

/**
 * signOut ends the session and clears the page first, so that Back shows nothing. It throws, and stays, when the server
 * did not end the session.
 */
export async function signOut(): Promise<void> {
  try {
    await api.post('/api/auth/signout');
  } catch (err) {
    if (!(err instanceof Problem && err.status === 401)) throw err; // who is not known has signed out
  }
  document.body.replaceChildren();
  location.replace('/signin');
}

/** signOutError is the message of a failed sign-out. */
export const signOutError = (err: unknown): string => `You are still signed in. ${asProblem(err).message}`;

/** reloadWhenRestored reloads a page restored from the back/forward cache: the user may have signed out since. */
export function reloadWhenRestored(): void {
  addEventListener('pageshow', (e) => {
    if (!e.persisted) return;
    document.body.replaceChildren();
    location.reload();
  });
}
