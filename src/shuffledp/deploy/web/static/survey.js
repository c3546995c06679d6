// The survey page: takes answers, hands each to the client, and says what became of it.
import { kept, report } from "./shuffledp.js";

const words = JSON.parse(document.body.dataset.messages);
const form = document.getElementById("survey");
const button = form.querySelector("button");
const status = document.getElementById("status");
const consent = document.getElementById("consent");
const questions = [...form.querySelectorAll("fieldset")];
// Who needs a code has it at the end of the address, which browsers send nobody.
const code = () => new URLSearchParams(location.hash.slice(1)).get("code") ?? undefined;

const fieldsOf = (question) => [...question.querySelectorAll("input, select")];
const answersOf = (question) => new FormData(form).getAll(question.id);

/** What is wrong with an answer, or nothing. */
function fault(question) {
  const wrong = fieldsOf(question).find((field) => !field.validity.valid);
  if (wrong?.validity.valueMissing) return words.missing;
  return wrong || answersOf(question).length > question.dataset.most ? words.errors.value : "";
}

function complain(question, text) {
  question.querySelector(".error").textContent = text;
  for (const field of fieldsOf(question)) field.toggleAttribute("aria-invalid", Boolean(text));
}

/** Shows the altered report for people: the answer that it names, where reports are answers, else its bytes. */
function show(question, { id, randomized }) {
  const place = parseInt(randomized.match(/../g).reverse().join(""), 16);
  const named = "named" in question.dataset && question.querySelectorAll("input, option:not([disabled])")[place];
  const said = named ? `\u2068${named.value}\u2069` : randomized;
  const receipt = question.querySelector(".receipt");
  receipt.textContent = words.receipt.replace("{report}", () => said).replace("{id}", id);
  receipt.hidden = false;
}

/** Sends one report; returns whether it has arrived. Where nothing is kept yet, nothing was sent. */
async function send(question) {
  const chosen = answersOf(question);
  const answer = question.dataset.control === "checkbox" && !question.disabled ? chosen : chosen[0];
  const onState = (state) => {
    status.textContent = state === "waiting" ? words.waiting : words.sending;
    if (state === "kept") lock(question);
  };
  try {
    const receipt = await report(question.dataset.task, answer, { onState, code: code() });
    complain(question, receipt.answer === "late" ? words.errors.late : "");
    show(question, receipt);
    return receipt.answer !== "late";
  } catch (error) {
    complain(question, words.errors[error.code] ?? `${words.errors.other} ${error.message}`);
    return false;
  }
}

/** From the first report on, the answer is of no use any more: it is taken off the page. */
function lock(question) {
  question.disabled = true;
  for (const field of fieldsOf(question)) {
    if (field.type === "number") field.value = "";
    field.selectedIndex = 0;
    field.checked = false;
  }
}

async function sendAll() {
  button.disabled = true;
  let hasArrived = true;
  for (const each of questions) hasArrived = (await send(each)) && hasArrived;
  status.textContent = hasArrived ? words.done : words.some;
  if (!hasArrived) button.textContent = words.again;
  button.disabled = hasArrived;
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const open = questions.filter((each) => !each.disabled);
  for (const each of open) complain(each, fault(each));
  const wrong = open.find(fault);
  status.textContent = wrong ? "" : consent.checked ? words.checking : words.agree;
  if (wrong) fieldsOf(wrong)[0].focus();
  else if (consent.checked) sendAll();
  else consent.focus();
});

/** In another language the page has the same code. */
for (const link of document.querySelectorAll("nav a")) link.onclick = () => { link.hash = location.hash; };

/** What this browser has kept of these tasks: asks no server. */
for (const question of questions) {
  const receipt = await kept(question.dataset.task).catch(() => null);
  if (!receipt) continue;
  lock(question);
  show(question, receipt);
  document.getElementById("answered").hidden = false;
  button.textContent = words.again;
}
button.disabled = false;
