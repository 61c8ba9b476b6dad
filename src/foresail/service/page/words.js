// Durations and clocks as people say them.

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function duration(seconds) {
  if (seconds === null || !Number.isFinite(seconds)) return "no known time";
  const amount = Math.max(0, seconds);
  if (amount < 1) return "0 s";
  for (const [at, [size, unit]] of UNITS.entries()) {
    if (amount < size) continue;
    const whole = Math.floor(amount / size);
    const next = UNITS[at + 1];
    const rest = next ? Math.floor((amount - whole * size) / next[0]) : 0;
    return whole < 10 && rest ? `${whole} ${unit} ${rest} ${next[1]}` : `${whole} ${unit}`;
  }
}

export function clock(unixSeconds) {
  return new Date(unixSeconds * 1000).toLocaleString([], { dateStyle: "short", timeStyle: "medium" });
}

// As foresail.explain.start_words says it, by the clock of who reads it.
export function startWords({ start, is_known: isKnown }, now) {
  if (!isKnown) return "too little is known yet";
  const { p10: low, p50: median, p90: high } = start;
  if (median === null) return "at no known time";
  if (high !== null && high - now < 1) return "now";
  const isSoon = high !== null && high - now < 600;
  const today = new Date(now * 1000).toDateString();
  const say = (moment) => {
    if (isSoon) return duration(Math.round(moment - now));
    const at = new Date(moment * 1000);
    const day = at.toDateString() === today ? {} : { day: "numeric", month: "short" };
    return at.toLocaleString([], { ...day, hour: "2-digit", minute: "2-digit" });
  };
  if (high !== null && say(low) === say(high)) return `${isSoon ? "in about" : "about"} ${say(median)}`;
  const likely = `most likely about ${say(median)}; 1 in 10`;
  if (high === null) return `not before ${say(low)}, ${likely} never`;
  const from = isSoon ? `in ${say(low)} to` : `between ${say(low)} and`;
  return `${isSoon && say(low) === duration(0) ? "within" : from} ${say(high)}, ${likely} later`;
}

export function percent(share) {
  return share === null || share === undefined ? "" : `${Math.round(100 * share)} %`;
}

export function count(number, word) {
  return `${number.toLocaleString("en")} ${word}${number === 1 ? "" : "s"}`;
}

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

export function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
