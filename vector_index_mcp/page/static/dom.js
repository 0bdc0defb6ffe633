// Builds elements from data. Text of the project only ever becomes text nodes.

import { OBEYED } from "./obeyed.js"; // generated from the table in foreign.py

const SHORT = { "\t": "\\t", "\n": "\\n", "\r": "\\r" };

// Escapes the characters of a name or message that a browser would obey or not show; does the same
// as `foreign.visible`.
export function visible(text) {
  return String(text).replace(OBEYED, (character) => SHORT[character] || escaped(character.codePointAt(0)));
}

function escaped(code) {
  const [letter, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${letter}${code.toString(16).padStart(digits, "0")}`;
}

// A text node of several lines, for a text that the service has escaped already.
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

// Encodes a path for an address. Bytes of a name that are not UTF-8 are replaced.
export const encodedPath = (path) => path.split("/").map((part) => encodeURIComponent(part.toWellFormed())).join("/");

export function decodedPath(text) {
  try {
    return text.split("/").map(decodeURIComponent).join("/");
  } catch {
    return text; // the address was typed by hand, and is not valid
  }
}

export const byId = (id) => document.getElementById(id);

export const number = (value) => value.toLocaleString("en");

export const plural = (count, one, many) => `${number(count)} ${count === 1 ? one : many}`;

export function percent(part, whole) {
  if (!whole) return 100;
  // Show 100 only when everything is done.
  return part >= whole ? 100 : Math.min(99, Math.floor((100 * part) / whole));
}

export function bytes(count) {
  if (count < 1e6) return `${Math.ceil(count / 1e3)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB` : `${(count / 1e9).toFixed(1)} GB`;
}

// -- the service ---------------------------------------------------------------------------------

export class Refused extends Error {}

// Ask the service a question and return its JSON answer; throws Refused with the service's message.
export async function ask(what, values, signal) {
  return answered(await fetch(`api/${what}?${new URLSearchParams(values)}`, { signal }));
}

// Ask the service for a change; otherwise like `ask`.
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
