// Sets the theme before the first paint; the page's policy forbids inline scripts.
(() => {
  let choice = 'system';
  try {
    choice = localStorage.getItem('loadstone.theme') || 'system';
  } catch {
    // Storage may be blocked; the system's theme is used then.
  }
  const dark = choice === 'dark' || (choice === 'system' && matchMedia('(prefers-color-scheme: dark)').matches);
  document.documentElement.dataset.theme = dark ? 'dark' : 'light';
})();
