// Plans anew while one types or slides: the server renders, and only the results are replaced.
const form = document.getElementById("planner");
const slider = document.getElementById("slider");
let waiting, last = 0;

const place = () => Math.log10(Number(form.elements.epsilon.value));
if (Number.isFinite(place())) slider.value = place();

async function renew() {
  const query = new URLSearchParams(new FormData(form)).toString();
  const own = ++last;
  const answer = await fetch(`/?${query}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (own !== last) return; // a newer question is on its way
  document.getElementById("results").replaceWith(document.adoptNode(page.getElementById("results")));
  history.replaceState(null, "", `/?${query}`);
}

form.addEventListener("input", (event) => {
  if (event.target === slider) form.elements.epsilon.value = Number((10 ** slider.value).toPrecision(2));
  else if (event.target.name === "epsilon" && Number.isFinite(place())) slider.value = place();
  clearTimeout(waiting);
  waiting = setTimeout(() => renew().catch(() => {}), 250);
});
form.addEventListener("submit", (event) => {
  event.preventDefault();
  renew().catch(() => {});
});
