// Elements from data. Text of the project only ever becomes text nodes.

import { OBEYED } from "./obeyed.js"; // made of the table in foreign.py

const SHORT = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

// A name or a message with everything visible that would be obeyed or not be seen: what
// `foreign.visible` gives.
export function visible(text) {
  return String(text).replace(OBEYED, (character) => SHORT[character] || escaped(character.codePointAt(0)));
}

function escaped(code) {
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

// A text of several lines that is visible already.
export const lines = (text) => document.createTextNode(text);

export function el(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false)
    .map((child) => (child instanceof Node ? child : document.createTextNode(visible(child)))));
  return element;
}

// A path in an address. A name whose bytes are no text cannot be written there.
export const encodedPath = (path) => path.split("/").map((part) => encodeURIComponent(part.toWellFormed())).join("/");

export function decodedPath(text) {
  try {
    return text.split("/").map(decodeURIComponent).join("/");
  } catch {
    return text; // somebody wrote it by hand
  }
}

export const byId = (id) => document.getElementById(id);

export const number = (value) => value.toLocaleString("en");

export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

export function percent(part, whole) {
  if (!whole) return 100;
  // Not 100 before all of it is there.
  return part >= whole ? 100 : Math.min(99, Math.floor((100 * part) / whole));
}

export function bytes(count) {
  if (count < 1e6) return `${Math.ceil(count / 1e3)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

// -- the service ---------------------------------------------------------------------------------

export class Refused extends Error {}

// The answer to a question, as JSON; a Refused error in the service's own words if it has none.
export async function ask(what, values, signal) {
  return answered(await fetch(`api/${what}?${new URLSearchParams(values)}`, { signal }));
}

// The same of something that is done.
export async function tell(what, values) {
  return answered(await fetch(`api/${what}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(values),
  }));
}

async function answered(response) {
  if (!(response.headers.get("content-type") || "").startsWith("application/json")) {
    throw new Refused(await response.text());
  }
  const answer = await response.json();
  if (!response.ok) throw new Refused(answer.error);
  return answer;
}
