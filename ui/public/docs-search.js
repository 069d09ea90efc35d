// Searches the page of the API (/api/docs), and opens the operation that a link leads to.
(() => {
  const label = document.getElementById('search');
  const box = label.querySelector('input');
  const count = label.querySelector('output');
  const items = [...document.querySelectorAll('details[id^="op-"], .schema')].map((el) => ({
    el,
    text: el.textContent.toLowerCase(),
  }));
  const sections = [...document.querySelectorAll('body > section')];
  const index = document.querySelector('nav');
  const find = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let hits = 0;
    for (const { el, text } of items) {
      const hit = words.every((w) => text.includes(w));
      el.toggleAttribute('data-miss', !hit);
      if (hit) hits++;
    }
    for (const s of sections)
      s.toggleAttribute(
        'data-miss',
        words.length > 0 && !s.querySelector('details:not([data-miss]), .schema:not([data-miss])'),
      );
    index.toggleAttribute('data-miss', words.length > 0);
    count.textContent = words.length ? `${hits} ${hits === 1 ? 'result' : 'results'}` : '';
  };
  const open = () => {
    const el = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!el) return;
    if (el.closest('[data-miss]')) {
      box.value = '';
      find();
    }
    if (el.matches('details')) el.open = true;
    el.scrollIntoView();
  };
  label.hidden = false;
  box.addEventListener('input', find);
  addEventListener('hashchange', open);
  addEventListener('keydown', (e) => {
    if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || e.target === box) return;
    e.preventDefault();
    box.focus();
  });
  open();
})();
