// Keeps the page up to date: fetches it again, unless somebody is at work on it.
const SECONDS = 5;

async function renew() {
  const isBusy = document.hidden || String(getSelection()) || document.querySelector("main :focus, main details[open]");
  if (isBusy) return;
  const answer = await fetch(location.href, { cache: "no-store" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.querySelector("main");
  if (fresh) document.querySelector("main").replaceWith(document.adoptNode(fresh));
}

setInterval(() => renew().catch(() => {}), 1000 * SECONDS);
