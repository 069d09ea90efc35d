import { api, asProblem, Problem } from '../api/client';

/**
 * Ends the session and leaves the page: what it has shown is taken out of it first, so that Back finds nothing. Throws
 * when the server has not ended the session; then nothing is left.
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

/** What is said to who wanted to sign out and did not. */
export const notSignedOut = (err: unknown): string => `You are still signed in. ${asProblem(err).message}`;

/** A page that the browser has kept as it was is loaded anew: who has signed out since is not shown it. */
export function loadAnewWhenKept(): void {
  addEventListener('pageshow', (e) => {
    if (!e.persisted) return;
    document.body.replaceChildren();
    location.reload();
  });
}
