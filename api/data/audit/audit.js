// The labelling page. All text that comes from a model is put in with textContent and nothing else.
import { words } from "./words.js";

const RETRY_MS = 2000;
const TOKEN = "dikast-token", NAME = "dikast-name", LANGUAGE = "dikast-language";
const CHOICES = {
  "which is better": [["left", "1"], ["tie", "0"], ["right", "2"], ["skip", "s"]],
  "keep or drop": [["keep", "1"], ["drop", "2"], ["skip", "s"]],
};
const $ = (id) => document.getElementById(id);
const state = { token: "", name: "", item: null, shownAt: 0, busy: false, status: null, stop: null };
let language = "en";

// -- words ----------------------------------------------------------------------------------------

const say = (key, ...numbers) => {
  const word = words[language][key];
  return typeof word === "function" ? word(...numbers) : word;
};

function speak(chosen) {
  language = chosen in words ? chosen : "en";
  sessionStorage.setItem(LANGUAGE, language);
  document.documentElement.lang = language;
  for (const each of document.querySelectorAll("[data-word]")) each.textContent = say(each.dataset.word);
  for (const each of document.querySelectorAll("[data-language]")) {
    each.setAttribute("aria-pressed", String(each.dataset.language === language));
  }
  $("languages").setAttribute("aria-label", say("languages"));
  $("choices").setAttribute("aria-label", say("choices"));
  labelled($("back"), "←", say("back"));
  labelled($("forth"), "→", say("forth"));
  if (state.item) draw(state.item);
  if (state.stop) $("stop-text").textContent = say(state.stop);
  if (state.status) tell(...state.status);
}

function labelled(button, key, text) {
  const sign = document.createElement("kbd");
  sign.textContent = key;
  sign.setAttribute("aria-hidden", "true");
  button.replaceChildren(sign, text);
}

function tell(key, kind = "", ...more) {
  state.status = key ? [key, kind, ...more] : null;
  $("status").className = kind;
  $("status").textContent = key ? say(key, ...more) : "";
}

// -- the server -----------------------------------------------------------------------------------

async function call(what, body) {
  const response = await fetch(`api/${what}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", Authorization: `Bearer ${state.token}` },
    body: JSON.stringify({ annotator: state.name, ...body }),
  });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { refused: true, status: response.status });
  return answer;
}

function halt(key) {
  state.stop = key;
  only("stop");
  $("stop-text").textContent = say(key);
}

function only(id) {
  for (const each of ["stop", "enter", "item", "done"]) $(each).hidden = each !== id;
  const working = id === "item";
  $("bar-bottom").hidden = !working;
  $("keys-box").hidden = !working;
  $("leave").hidden = !(working || id === "done");
  $("progress").hidden = !(working || id === "done");
}

// -- showing --------------------------------------------------------------------------------------

function fill(element, text) {
  element.classList.toggle("empty", !text);
  element.textContent = text || say("empty");
}

function drawTurns(item) {
  const turns = item.messages.length ? item.messages : [{ role: "", content: item.question }];
  $("turns").replaceChildren(...turns.map((turn) => {
    const box = document.createElement("div");
    box.className = "turn";
    if (item.messages.length) {
      const role = document.createElement("div");
      role.className = "role";
      role.textContent = words[language].roles[turn.role] ?? turn.role;
      box.append(role);
    }
    const text = document.createElement("div");
    text.className = "text";
    text.dir = "auto";
    text.textContent = turn.content;
    box.append(text);
    return box;
  }));
}

function drawChoices(item) {
  $("choices").replaceChildren(...CHOICES[item.ask].map(([choice, key]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.dataset.choice = choice;
    button.setAttribute("aria-pressed", String(item.choice === choice));
    button.setAttribute("aria-keyshortcuts", key);
    labelled(button, key, say(choice));
    button.addEventListener("click", () => decide(choice));
    return button;
  }));
}

function draw(item) {
  const title = item.ask === "keep or drop" ? say("title_keep") : say("title");
  $("heading").textContent = `${say("place", item.at + 1, item.total)}: ${title}`;
  document.title = `${item.at + 1}/${item.total} · dikast`;
  drawTurns(item);
  fill($("left"), item.left);
  fill($("right"), item.right);
  const single = item.ask === "keep or drop" && !item.right;
  $("right-card").hidden = single;
  document.querySelector(".answers").classList.toggle("one", single);
  $("left-card").classList.toggle("chosen", item.choice === "left");
  $("right-card").classList.toggle("chosen", item.choice === "right");
  const reference = [item.reference, ...item.key_points].filter(Boolean).join("\n");
  $("reference-box").hidden = !reference;
  $("reference").textContent = reference;
  $("note-box").hidden = !item.note;
  $("note").textContent = item.note ?? "";
  drawChoices(item);
  $("back").setAttribute("aria-disabled", String(item.at === 0));
  advance(item);
}

function advance(session) {
  $("bar").max = session.total;
  $("bar").value = session.done;
  $("bar-label").textContent = say("progress", session.done, session.total);
}

async function show(at, total) {
  if (at >= total) return finish(await call("session", {}));
  const item = await call("item", { at });
  state.item = item;
  state.shownAt = performance.now();
  only("item");
  draw(item);
  window.scrollTo(0, 0);
  $("heading").focus({ preventScroll: true });
  if (item.choice) tell("earlier");
  return undefined;
}

function finish(session) {
  if (session.next < session.total) return show(session.next, session.total);
  only("done");
  advance(session);
  $("done-text").textContent = say("done_text", session.total);
  $("done-heading").focus();
  return undefined;
}

// -- deciding -------------------------------------------------------------------------------------

const wait = (ms) => new Promise((then) => setTimeout(then, ms));

async function saved(body) {
  for (;;) {
    try {
      return await call("label", body);
    } catch (error) {
      if (error.refused) throw error;
      tell("lost", "bad");
      await wait(RETRY_MS);
    }
  }
}

async function exclusively(work) {
  if (state.busy) return;
  state.busy = true;
  try {
    await work();
  } catch (error) {
    if (error.refused) tell("refused", "bad", error.message);
    else tell("no_server", "bad");
  } finally {
    state.busy = false;
  }
}

const decide = (choice) => exclusively(async () => {
  const { at, total } = state.item;
  const duration_s = (performance.now() - state.shownAt) / 1000;
  tell("saving");
  await saved({ at, choice, duration_s });
  tell("saved", "good");
  await show(at + 1, total);
});

const go = (step) => exclusively(async () => {
  const { at, total } = state.item;
  if (at + step < 0) return;
  tell("");
  await show(at + step, total);
});

function onKey(event) {
  if (event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if ($("item").hidden || !$("keys").checked) return;
  if (event.key === "ArrowLeft") return void go(-1);
  if (event.key === "ArrowRight") return void go(1);
  const found = CHOICES[state.item.ask].find(([, key]) => key === event.key.toLowerCase());
  if (found) {
    event.preventDefault();
    decide(found[0]);
  }
}

// -- starting -------------------------------------------------------------------------------------

async function enter() {
  const session = await call("session", {});
  state.name = session.annotator;
  sessionStorage.setItem(NAME, state.name);
  $("who").textContent = state.name;
  await show(session.next, session.total);
}

async function begin() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given) {
    sessionStorage.setItem(TOKEN, given);
    history.replaceState(null, "", location.pathname);
  }
  state.token = sessionStorage.getItem(TOKEN) ?? "";
  state.name = sessionStorage.getItem(NAME) ?? "";
  speak(sessionStorage.getItem(LANGUAGE) ?? (navigator.language.startsWith("zh") ? "zh" : "en"));
  if (!state.name) {
    only("enter");
    $("name").focus();
    return;
  }
  try {
    await enter();
  } catch (error) {
    halt(error.refused ? "no_token" : "no_server");
  }
}

$("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  state.name = $("name").value;
  try {
    await enter();
  } catch (error) {
    if (error.status === 400) $("name").setCustomValidity(error.message), $("name").reportValidity();
    else halt(error.refused ? "no_token" : "no_server");
  }
});
$("name").addEventListener("input", () => $("name").setCustomValidity(""));
$("back").addEventListener("click", () => go(-1));
$("forth").addEventListener("click", () => go(1));
$("review").addEventListener("click", () => exclusively(() => show(state.item ? state.item.total - 1 : 0, Infinity)));
for (const each of document.querySelectorAll("[data-language]")) {
  each.addEventListener("click", () => speak(each.dataset.language));
}
$("leave").addEventListener("click", () => {
  sessionStorage.removeItem(NAME);
  location.reload();
});
document.addEventListener("keydown", onKey);
// A new address in an open tab only changes the fragment.
window.addEventListener("hashchange", () => location.reload());
begin();
