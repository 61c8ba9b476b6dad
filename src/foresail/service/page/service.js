// The service: asked with the token of this tab, which is kept nowhere else.

const KEY = "foresail-token";

export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ? describe(problem) : `the service answers ${status}`);
    this.status = status;
  }
}

function describe(problem) {
  const field = problem.field ? `${problem.field}: ` : "";
  const expected = problem.expected ? `; expected ${problem.expected}` : "";
  return field + problem.detail + expected;
}

export const token = () => sessionStorage.getItem(KEY);
export const keepToken = (secret) => sessionStorage.setItem(KEY, secret);
export const forgetToken = () => sessionStorage.removeItem(KEY);

async function answered(path, options = {}) {
  const headers = { Authorization: `Bearer ${token()}`, ...options.headers };
  const answer = await fetch(path, { ...options, headers, cache: "no-store" });
  if (answer.ok) return answer;
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem);
}

export async function ask(path) {
  return (await answered(path)).json();
}

// What a job has written from a byte on, and the byte where that ends.
export async function written(path) {
  const answer = await answered(path);
  return [await answer.text(), Number(answer.headers.get("X-Next-Offset"))];
}

export async function tell(path, body, headers = {}) {
  const options = { method: "POST", headers };
  if (body !== undefined) {
    options.body = JSON.stringify(body);
    options.headers = { ...headers, "Content-Type": "application/json" };
  }
  return (await answered(path, options)).json();
}

// Calls `happened` with each event; returns when the stream has ended. A stream by fetch, so that the
// token is in a header and not in an address.
export async function follow(last, happened, signal) {
  const headers = last === null ? {} : { "Last-Event-ID": String(last) };
  const answer = await answered("/v1/events", { headers, signal });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const parts = rest.split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const event = { id: null, kind: "message", data: "" };
      for (const line of part.split("\n")) {
        if (line.startsWith("id: ")) event.id = Number(line.slice(4));
        else if (line.startsWith("event: ")) event.kind = line.slice(7);
        else if (line.startsWith("data: ")) event.data += line.slice(6);
      }
      if (event.id !== null) happened(event);
    }
  }
}
