// Keeps a page up to date: fetches it again, and replaces the part that has changed.
const form = document.getElementById("planner");
let waiting, last = 0;

async function renew(url, part) {
  const own = ++last;
  const answer = await fetch(url, { cache: "no-store" });
  const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector(part);
  if (!answer.ok || own !== last) return; // or a newer question is on its way
  document.querySelector(part).replaceWith(document.adoptNode(fresh));
  history.replaceState(null, "", url);
}

/** Plans anew while one types or slides. */
form?.addEventListener("input", ({ target }) => {
  const { epsilon, slider } = form.elements;
  const place = Math.log10(epsilon.value);
  if (target === slider) epsilon.value = Number((10 ** slider.value).toPrecision(2));
  else if (Number.isFinite(place)) slider.value = place;
  clearTimeout(waiting);
  waiting = setTimeout(() => renew(`/?${new URLSearchParams(new FormData(form))}`, "#results").catch(() => {}), 250);
});

/** Shows the console's news, unless somebody is at work on the page. */
function look() {
  const isBusy = document.hidden || String(getSelection()) || document.querySelector("main :focus, main details[open]");
  if (!isBusy) renew(location.href, "main").catch(() => {});
}

if (!form) setInterval(look, 5_000);
