// Refreshes what changes on a page. Every page works without this.

const { base, events, next } = document.body.dataset;

// Without TLS the session's pages have a path that only this origin's storage knows.
const stored = 'pgfsm.base';
const known = localStorage.getItem(stored) ?? '';
if (next === undefined) {
  if (base !== '/console/') localStorage.setItem(stored, base);
} else if (location.pathname.startsWith(known)) {
  localStorage.removeItem(stored);
} else if (/^\/console\/s\/[0-9a-f]{32}\/$/.test(known)) {
  location.replace(known + next);
}

let after = document.body.dataset.after;
let source;

// lasting is a part without what changes while time passes, or because the reader opened something.
function lasting(part) {
  const copy = part.cloneNode(true);
  for (const time of copy.querySelectorAll('time[datetime]')) time.textContent = '';
  for (const details of copy.querySelectorAll('details')) details.removeAttribute('open');
  return copy.outerHTML;
}

// keep gives a new part what the reader did with the old one: what is open, and what was typed. Elements are the same if their ids are.
function keep(old, now) {
  for (const details of now.querySelectorAll('details[id]')) {
    const before = old.querySelector('#' + CSS.escape(details.id));
    if (before) details.open = before.open;
  }
  for (const field of now.querySelectorAll('textarea[id]')) {
    const before = old.querySelector('#' + CSS.escape(field.id));
    if (before) field.value = before.value;
  }
}

// renew sets the times of a part to those of the same part later.
function renew(part, now) {
  const times = now.querySelectorAll('time[datetime]');
  part.querySelectorAll('time[datetime]').forEach((time, i) => { time.textContent = times[i].textContent; });
}

// refresh asks for the page again. It replaces the parts that changed, and says so. Where only the time passed, it changes the times.
function refresh() {
  const request = new XMLHttpRequest();
  request.open('GET', location.href);
  request.responseType = 'document';
  request.overrideMimeType('text/html'); // a proxy's empty answer is no faulty XML, which the browser would show with inline styles
  request.setRequestHeader('Pgfsm-Refresh', '1');
  request.onload = () => {
    const page = request.response;
    if (request.status === 401) location.replace(location.href);
    if (request.status !== 200 || !page) return;
    after = page.body.dataset.after ?? after;
    const focused = document.activeElement?.id;
    let changed = false;
    for (const part of document.querySelectorAll('[data-live]')) {
      const now = page.getElementById(part.id);
      if (!now) continue;
      if (part.dataset.digest && part.dataset.digest === now.dataset.digest) { // the same decision: what was typed, and an error beside it, stay
        const texts = now.querySelectorAll('[data-says]');
        part.querySelectorAll('[data-says]').forEach((text, i) => { text.textContent = texts[i].textContent; });
        continue;
      }
      if (lasting(now) === lasting(part)) {
        renew(part, now);
        continue;
      }
      keep(part, now);
      part.replaceWith(document.adoptNode(now));
      changed = true;
    }
    if (focused) document.getElementById(focused)?.focus();
    if (changed) document.getElementById('said').textContent = 'The page has changed.';
  };
  request.send();
}

// follow opens the event stream while the page is visible. A browser has few connections for one site.
function follow() {
  if (document.hidden) {
    source?.close();
    source = undefined;
  } else if (!source) {
    source = new EventSource(`${events}&after=${after}`);
    source.addEventListener('change', refresh);
    source.addEventListener('error', () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      source = undefined;
      refresh();
      setTimeout(follow, 3000);
    });
  }
}

if (events) {
  follow();
  document.addEventListener('visibilitychange', () => {
    follow();
    if (!document.hidden) refresh();
  });
  setInterval(() => { if (!document.hidden) refresh(); }, 30000);
}
