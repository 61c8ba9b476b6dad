// The page: what is shown, and when it is asked for anew.

import { planPicture, planWords, startRange, usagePicture, usageWords } from "./pictures.js";
import { Refused, ask, follow, forgetToken, keepToken, tell, token, written } from "./service.js";
import { clock, count, duration, element, percent, startWords } from "./words.js";

const PAGE = 50;
const LIVING = ["running", "pending", "held"];
const STATES = {
  living: LIVING,
  running: ["running"],
  waiting: ["pending", "held"],
  done: ["completed", "failed", "limit", "cancelled", "withdrawn"],
  "": [],
};
const at = (id) => document.getElementById(id);

const shown = { job: null, who: null, pages: [null], next: null, log: { out: 0, err: 0 } };

// ---- light and dark

function paint(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  at("theme").textContent = dark ? "Light" : "Dark";
  return dark;
}

at("theme").addEventListener("click", () => {
  const next = at("theme").textContent.toLowerCase();
  localStorage.setItem("foresail-theme", next);
  paint(next);
});
paint(localStorage.getItem("foresail-theme"));

// ---- in and out

at("enter").addEventListener("submit", async (event) => {
  event.preventDefault();
  keepToken(at("token").value.trim());
  at("token").value = "";
  await enter();
});

at("leave").addEventListener("click", () => leave(""));

function leave(why) {
  forgetToken();
  shown.stop?.abort();
  at("inside").hidden = true;
  at("leave").hidden = true;
  at("enter").hidden = false;
  at("headline").textContent = "";
  at("live").textContent = "";
  at("refused").textContent = why;
  at("token").focus();
}

async function enter() {
  if (!token()) return leave("");
  try {
    shown.who = await ask("/v1/whoami");
  } catch (error) {
    return leave(error instanceof Refused && error.status === 401 ? "This token opens nothing." : error.message);
  }
  at("enter").hidden = true;
  at("inside").hidden = false;
  at("leave").hidden = false;
  at("submit-open").hidden = shown.who.role === "read-only";
  await Promise.all([look(), lookBack()]);
  stay();
}

// ---- what is asked anew when something has happened

let looking = false;
let again = false;

async function look() {
  if (looking) {
    again = true;
    return;
  }
  looking = true;
  try {
    await Promise.all([showCluster(), showPlan(), showJobs(), shown.job ? showJob() : null]);
  } catch (error) {
    fault(error);
  } finally {
    looking = false;
    if (again) {
      again = false;
      soon();
    }
  }
}

let timer = null;
function soon() {
  timer ??= setTimeout(() => {
    timer = null;
    if (token()) look();
  }, 500);
}

async function lookBack() {
  try {
    await Promise.all([showUsage(), showTrust()]);
  } catch (error) {
    fault(error);
  }
}

function fault(error) {
  if (error instanceof Refused && error.status === 401) leave("The token does not open this any more.");
  else at("live").textContent = `not up to date: ${error.message}`;
}

async function stay() {
  shown.stop?.abort();
  const stop = (shown.stop = new AbortController());
  let last = null;
  let pause = 500;
  while (!stop.signal.aborted) {
    try {
      at("live").textContent = "live";
      await follow(last, (event) => {
        last = event.id;
        pause = 500;
        if (event.kind === "node") showNodes().catch(fault);
        soon();
      }, stop.signal);
    } catch (error) {
      if (stop.signal.aborted) return;
      fault(error);
    }
    if (stop.signal.aborted) return;
    at("live").textContent = "the service is away; waiting for it";
    await new Promise((done) => setTimeout(done, pause));
    pause = Math.min(10000, 2 * pause);
    soon();
  }
}

setInterval(() => token() && shown.who && look(), 5000);
setInterval(() => token() && shown.who && lookBack(), 30000);

// ---- the cluster

async function showCluster() {
  const cluster = await ask("/v1/cluster");
  const counts = cluster.jobs_by_state;
  const used = cluster.cpus - cluster.free_cpus;
  at("headline").textContent =
    `${Math.max(0, used)} of ${count(cluster.cpus, "cpu")} in use, ${counts.running ?? 0} running, ` +
    `${counts.pending ?? 0} waiting, ${counts.held ?? 0} held. Policy ${cluster.policy}.`;
  at("remarks").textContent = cluster.remarks.join(" ");
  drawNodes(cluster.nodes);
}

async function showNodes() {
  drawNodes((await ask("/v1/nodes")).nodes);
}

function drawNodes(nodes) {
  const may = ["operator", "admin"].includes(shown.who.role);
  const rows = nodes.map((node) => {
    const cell = element("td");
    if (may && node.state !== "down") {
      const wish = node.state === "drained" ? "resume" : "drain";
      const button = element("button", { type: "button" }, wish === "drain" ? "Drain" : "Resume");
      button.addEventListener("click", async () => {
        button.disabled = true;
        await tell(`/v1/nodes/${encodeURIComponent(node.name)}/${wish}`).catch(fault);
        setTimeout(() => showNodes().catch(fault), 400);
      });
      cell.append(button);
    }
    const memory = [node.free_memory_bytes, node.memory_bytes].map((bytes) => (bytes / 2 ** 30).toFixed(1));
    const free = [[node.free_cpus, node.cpus], memory, [node.free_gpus, node.gpus]];
    return element("tr", {}, element("td", {}, node.name), element("td", {}, node.state),
      ...free.map((of) => element("td", { class: "number" }, of.join(" of "))), cell);
  });
  at("nodes").tBodies[0].replaceChildren(...rows);
  at("nodes").hidden = rows.length === 0;
  at("nodes-says").textContent = rows.length ? "" : "This cluster does not tell its nodes apart.";
}

async function showPlan() {
  const plan = await ask("/v1/plan");
  at("plan-says").textContent = planWords(plan);
  if (!at("plan").contains(document.activeElement)) at("plan").replaceChildren(planPicture(plan, openJob));
}

async function showUsage() {
  const usage = await ask("/v1/usage");
  at("usage-says").textContent = usageWords(usage);
  at("usage").replaceChildren(usagePicture(usage));
}

async function showTrust() {
  const told = await ask("/v1/predictions");
  const rows = [["Runtimes, before they were known", told.runtimes], ["Starts, as forecast at submission", told.starts],
    ["Ends, as forecast at submission", told.ends]];
  let from = 0;
  for (const each of told.starts_by_horizon) {
    const to = each.below_seconds;
    if (each.told) rows.push([`Starts ${to === null ? `${duration(from)} or more` : `${duration(from)} to ${duration(to)}`} ahead`, each]);
    from = to;
  }
  at("trust").tBodies[0].replaceChildren(...rows.map(([name, judged]) => element("tr", {},
    element("th", { scope: "row" }, name),
    ...[judged.told ? judged.told.toLocaleString("en") : "none yet", percent(judged.below), percent(judged.within),
      percent(judged.above), percent(judged.stated)].map((cell) => element("td", { class: "number" }, cell)))));
}

// ---- the jobs

function listing() {
  const wanted = new URLSearchParams({ limit: PAGE });
  for (const state of STATES[at("state").value]) wanted.append("state", state);
  if (at("user").value.trim()) wanted.set("user", at("user").value.trim());
  if (at("name").value.trim()) wanted.set("name", at("name").value.trim());
  const isLiving = STATES[at("state").value].every((state) => LIVING.includes(state)) && at("state").value !== "";
  if (isLiving) wanted.set("order", "next");
  const page = shown.pages.at(-1);
  if (page !== null) wanted.set(isLiving ? "after" : "before", page);
  return `/v1/jobs?${wanted}`;
}

async function showJobs() {
  const { jobs, next } = await ask(listing());
  shown.next = next;
  const now = Date.now() / 1000;
  const ahead = jobs.map((job) => job.forecast?.start?.p90 ?? job.forecast?.start?.p50).filter((each) => each);
  const horizon = Math.max(60, ...ahead.map((each) => each - now));
  at("axis").textContent = ahead.length ? `(now to ${duration(horizon)} on)` : "";
  const focused = document.activeElement?.dataset?.job;
  at("jobs").tBodies[0].replaceChildren(...jobs.map((job) => row(job, now, horizon)));
  if (focused) at("jobs").querySelector(`[data-job="${CSS.escape(focused)}"]`)?.focus();
  at("jobs-says").textContent = jobs.length ? "" : "There are no such jobs.";
  at("newer").disabled = shown.pages.length === 1;
  at("older").disabled = next === null;
}

function row(job, now, horizon) {
  const link = element("button", { type: "button", class: "link", "data-job": job.job_id }, job.job_id);
  link.addEventListener("click", () => openJob(job.job_id));
  const begin = job.start_seconds ?? job.submit_seconds;
  const starts = element("td", { class: "starts" });
  const start = job.forecast?.start;
  if (start && job.state !== "running" && LIVING.includes(job.state)) {
    if (job.forecast.is_known) starts.append(startRange(start, now, horizon), " ");
    starts.append(startWords(job.forecast, now));
    if (job.forecast.held !== null) starts.append(`; only ${percent(job.forecast.held)} of such ranges held`);
  } else if (job.state === "pending") starts.append(element("span", { class: "note" }, "being forecast"));
  else if (job.state === "running") starts.append("runs");
  return element("tr", {},
    element("th", { scope: "row" }, link),
    element("td", { class: "name", title: job.name }, job.name),
    element("td", { class: "roomy" }, job.user),
    element("td", {}, element("span", { class: `state ${job.state}` }, job.state)),
    element("td", { class: "number roomy" }, `${job.cpus}`),
    element("td", { class: "number roomy" }, duration((job.end_seconds ?? now) - begin)),
    starts,
    element("td", { class: "why roomy" }, job.reason?.sentence ?? job.because ?? (job.state === "pending" ? "has just come" : "")));
}

for (const id of ["state", "user", "name"]) {
  at(id).addEventListener("change", () => {
    shown.pages = [null];
    showJobs().catch(fault);
  });
}
at("older").addEventListener("click", () => turn(() => shown.next !== null && shown.pages.push(shown.next)));
at("newer").addEventListener("click", () => turn(() => shown.pages.length > 1 && shown.pages.pop()));

function turn(page) {
  page();
  showJobs().catch(fault);
}

// ---- one job

async function openJob(jobId) {
  shown.job = jobId;
  shown.log = { out: 0, err: 0 };
  at("output").textContent = at("errors").textContent = "";
  at("one-says").textContent = "";
  at("one").hidden = false;
  await showJob().catch(fault);
  at("one").focus();
  at("one").scrollIntoView({ block: "start" });
}

function closeJob() {
  const jobId = shown.job;
  shown.job = null;
  at("one").hidden = true;
  at("jobs").querySelector(`[data-job="${CSS.escape(jobId ?? "")}"]`)?.focus();
}

async function showJob() {
  const jobId = shown.job;
  const [job, story] = await Promise.all([ask(`/v1/jobs/${jobId}`), ask(`/v1/jobs/${jobId}/story`)]);
  if (shown.job !== jobId) return;
  const now = Date.now() / 1000;
  at("one-title").textContent = `Job ${job.job_id}: ${job.name}`;
  const may = shown.who.role !== "read-only";
  at("cancel").disabled = !may || !LIVING.includes(job.state);
  at("hold").disabled = !may || job.state !== "pending";
  at("release").disabled = !may || job.state !== "held";
  const facts = [
    ["State", job.state + (job.exit_code === null ? "" : `, exit code ${job.exit_code}`)],
    ["Why", job.reason?.sentence ?? job.because],
    ["Starts", job.forecast?.start && LIVING.includes(job.state)
      ? [startWords(job.forecast, now), ...job.forecast.remarks].join("; ") : null],
    ["Misses its deadline", percent(job.forecast?.misses) || null],
    ["Expected run", job.belief ? `${duration(job.belief.p50)} (${duration(job.belief.p10)} to ${duration(job.belief.p90)})` : null],
    ["Command", job.command], ["Directory", job.directory], ["Cpus", `${job.cpus}`],
    ["Limit", job.requested_seconds === null ? "none" : duration(job.requested_seconds)],
    ["Memory", job.memory_bytes === null ? null : `at most ${Math.ceil(job.memory_bytes / 2 ** 20)} MiB`],
    ["Gpus", job.gpus ? `${job.gpus}` : null],
    ["Dependencies", job.dependencies.replaceAll(",", ", ")], ["Places", job.places],
  ].filter(([, value]) => value);
  at("facts").replaceChildren(...facts.flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, value)]));
  at("story").replaceChildren(...story.lines.map((line) =>
    element("li", {}, element("time", {}, clock(line.unix_seconds)), element("span", {}, line.sentence))));
  await Promise.all([read("out", at("output")), read("err", at("errors"))]);
}

async function read(stream, where) {
  const jobId = shown.job;
  const offset = shown.log[stream];
  const [text, end] = await written(`/v1/jobs/${jobId}/logs?stream=${stream}&offset=${offset}`);
  if (shown.job !== jobId || shown.log[stream] !== offset || !text) return;
  shown.log[stream] = end;
  where.append(text);
  while (where.textContent.length > 200000) where.firstChild.remove();
}

for (const wish of ["cancel", "hold", "release"]) {
  at(wish).addEventListener("click", async () => {
    at(wish).disabled = true;
    try {
      await tell(`/v1/jobs/${shown.job}/${wish}`);
      at("one-says").textContent = `asked to ${wish}`;
    } catch (error) {
      at("one-says").textContent = error.message;
    }
    soon();
  });
}
at("one-close").addEventListener("click", closeJob);

// ---- submit

function environment(text) {
  const lines = text.split("\n").filter((line) => line.trim());
  const wrong = lines.find((line) => !line.includes("="));
  if (wrong) throw new Error(`environment: ${wrong} is no variable; expected NAME=value`);
  return lines.length ? Object.fromEntries(lines.map((line) => line.split(/=(.*)/s).slice(0, 2))) : null;
}

function openSubmit() {
  const form = at("submit");
  form.hidden = !form.hidden;
  at("submit-open").setAttribute("aria-expanded", String(!form.hidden));
  if (!form.hidden) form.elements.command.focus();
}
at("submit-open").addEventListener("click", openSubmit);

at("submit").addEventListener("submit", async (event) => {
  event.preventDefault();
  const form = event.target;
  const job = { command: form.elements.command.value, cpus: Number(form.elements.cpus.value), held: form.elements.held.checked };
  for (const name of ["name", "requested_time", "deadline", "memory", "array", "after", "directory"]) {
    if (form.elements[name].value.trim()) job[name] = form.elements[name].value.trim();
  }
  if (Number(form.elements.gpus.value)) job.gpus = Number(form.elements.gpus.value);
  try {
    const variables = environment(form.elements.environment.value);
    if (variables) job.environment = variables;
    const { jobs } = await tell("/v1/jobs", job, { "Idempotency-Key": crypto.randomUUID() });
    const [first] = jobs;
    const said = jobs.length > 1 ? `${count(jobs.length, "job")}, ${first.job_id} to ${jobs.at(-1).job_id}, are accepted.`
      : `Job ${first.job_id} is accepted.`;
    at("submit-says").textContent = [said, ...(first.warnings ?? [])].join(" ");
    form.elements.command.value = "";
  } catch (error) {
    at("submit-says").textContent = error.message;
  }
  soon();
});

// ---- keys

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && shown.job) return closeJob();
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey || event.altKey) return;
  if (at("inside").hidden) return;
  const keys = { "/": () => at("name").focus(), n: openSubmit, o: () => at("older").click(), p: () => at("newer").click() };
  if (keys[event.key]) {
    event.preventDefault();
    keys[event.key]();
  }
});

if (!token()) leave("");
else enter();
