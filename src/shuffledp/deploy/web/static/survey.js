// The survey page: takes answers, hands each to the client, and says what became of it.
import { kept, report } from "./shuffledp.js";

const words = JSON.parse(document.body.dataset.messages);
const form = document.getElementById("survey");
const button = form.querySelector("button");
const status = document.getElementById("status");
const consent = document.getElementById("consent");
// Who needs a code has it at the end of the address, which browsers send nobody.
const code = new URLSearchParams(location.hash.slice(1)).get("code") ?? undefined;
const questions = [...form.querySelectorAll("fieldset")];

/** The answer that is chosen, or null: a label, a list of labels, or a number as it was typed. */
function answerOf(question) {
  const { control } = question.dataset;
  const chosen = [...question.querySelectorAll("input:checked")].map((each) => each.value);
  if (control === "checkbox") return chosen;
  if (control === "radio") return chosen.length ? chosen[0] : null;
  const field = question.querySelector("select, input");
  return field.selectedIndex === 0 || (control === "number" && field.value === "") ? null : field.value;
}

/** What is wrong with an answer, or nothing. */
function fault(question) {
  const answer = answerOf(question);
  if (answer === null) return words.missing;
  const field = question.querySelector("input[type=number]");
  const isWrong = field ? !field.checkValidity() : answer.length > question.dataset.most && Array.isArray(answer);
  return isWrong ? words.errors.value : "";
}

function complain(question, text) {
  question.querySelector(".error").textContent = text;
  for (const field of question.querySelectorAll("input, select")) field.toggleAttribute("aria-invalid", Boolean(text));
}

/** The altered report for people: the answer that it names, where reports are answers, else its bytes. */
function said(question, randomized) {
  if (!("named" in question.dataset)) return randomized;
  const bytes = randomized.match(/../g).reverse().join("");
  const fields = [...question.querySelectorAll("input, option:not(:disabled)")];
  return `\u2068${fields[parseInt(bytes, 16)]?.value ?? randomized}\u2069`;
}

function show(question, receipt) {
  let place = question.querySelector(".receipt");
  if (!place) {
    place = Object.assign(document.createElement("p"), { className: "receipt" });
    question.append(place);
  }
  place.textContent = words.receipt.replace("{report}", () => said(question, receipt.randomized)).replace("{id}", receipt.id);
}

/** Sends one report; returns whether it has arrived. Where nothing is kept yet, nothing was sent. */
async function send(question) {
  let isKept = question.dataset.kept === "true";
  const onState = (state, about) => {
    isKept ||= state === "kept";
    status.textContent = { checked: words.checking, waiting: words.waiting }[state] ?? words.sending;
    if (state === "kept") lock(question);
  };
  try {
    const receipt = await report(question.dataset.task, isKept ? undefined : answerOf(question), { onState, code });
    complain(question, receipt.answer === "late" ? words.errors.late : "");
    show(question, receipt);
    question.dataset.done = "true";
    return receipt.answer !== "late";
  } catch (error) {
    const code = error.code === "offline" && !isKept ? "unreachable" : error.code;
    complain(question, words.errors[code] ?? `${words.errors.other} ${error.message}`);
    return false;
  }
}

/** From the first report on, the answer is of no use any more: it is taken off the page. */
function lock(question) {
  question.dataset.kept = "true";
  for (const field of question.querySelectorAll("input, select")) {
    field.disabled = true;
    if (field.type === "number") field.value = "";
    else if (field.tagName === "SELECT") field.selectedIndex = 0;
    else field.checked = false;
  }
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const open = questions.filter((each) => each.dataset.kept !== "true");
  for (const each of open) complain(each, fault(each));
  const wrong = open.find((each) => fault(each));
  status.textContent = wrong ? "" : consent.checked ? words.checking : words.agree;
  if (wrong) return wrong.querySelector("input, select").focus();
  if (!consent.checked) return consent.focus();
  button.disabled = true;
  let arrived = true;
  for (const each of questions) {
    if (each.dataset.done !== "true") arrived = (await send(each)) && arrived;
  }
  status.textContent = arrived ? words.done : words.some;
  if (!arrived) {
    button.textContent = words.again;
    button.disabled = false;
  }
  return undefined;
});

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
