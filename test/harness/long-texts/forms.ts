import { type HTMLElement, parse } from "node-html-parser";
import { inForm } from "./fields.ts";
import { BODY_MAX, type Field, HEADER_MAX, type Sent } from "./texts.ts";

const OWN_PATH = /^\/(dashboard|auth|interaction)(\/|$)/;
const ID = /(?<=[/=])(?=[\w-]*[A-Z0-9])[\w-]{21,}/g;
const NOT_TYPED = new Set(["hidden", "checkbox", "radio", "submit", "button", "file"]);
const SMALL_FORMS = /^\/(interaction|auth)\//;
const SMALL_MAX = 15 * 1024;

export type FoundForms = { fields: Field[]; files: Field[] };

/** Follows the links from some pages, and returns the fields of all forms, for texts and for files. */
export async function findForms(origin: string, starts: string[], headers: Record<string, string>) {
  const found: FoundForms = { fields: [], files: [] };
  const seen = new Set<string>();
  const isNew = (key: string) => !seen.has(key) && seen.add(key);
  const queue = [...starts];
  for (const path of queue) {
    const response = await fetch(new URL(path, origin), { headers: { accept: "text/html", ...headers } });
    const page = await response.text();
    if (!response.headers.get("content-type")?.startsWith("text/html")) continue;
    const html = parse(page);
    for (const form of html.querySelectorAll("form")) {
      const { fields, files } = fieldsOf(form, response.url, { origin, ...headers });
      found.fields.push(...fields.filter(({ name }) => isNew(name)));
      found.files.push(...files.filter(({ name }) => isNew(name)));
    }
    for (const link of html.querySelectorAll("a[href]")) {
      const { origin: target, pathname, search } = new URL(link.attributes.href ?? "", response.url);
      if (target === origin && OWN_PATH.test(pathname) && isNew(kindOf(pathname + search)))
        queue.push(pathname + search);
    }
  }
  return found;
}

/** Names a path alike for all ids and values of parameters. */
const kindOf = (path: string): string => path.replaceAll(ID, "…").replaceAll(/=[^&]*/g, "");

function fieldsOf(form: HTMLElement, page: string, headers: Record<string, string>): FoundForms {
  const method = (form.attributes.method ?? "get").toUpperCase();
  const action = new URL(form.attributes.action ?? "", page);
  const isUpload = form.attributes.enctype === "multipart/form-data";
  const controls = form.querySelectorAll("input[name], textarea[name], select[name]");
  const values = controls.map(({ attributes, text }): [string, string] => [
    attributes.name ?? "",
    attributes.value ?? (text.trim() || "x"),
  ]);
  const send = (name: string, value: string | File): Sent => {
    const body = isUpload ? new FormData() : new URLSearchParams();
    for (const [other, text] of values) if (other !== name) body.append(other, text);
    body.append(name, value as string);
    return method === "GET"
      ? { path: `${action.pathname}?${body}`, init: { headers } }
      : { path: action.pathname + action.search, init: { method, body, headers } };
  };
  const max =
    method === "GET" ? HEADER_MAX : SMALL_FORMS.test(action.pathname) ? SMALL_MAX : BODY_MAX - 4 * 1024;
  const hasPassword = controls.some(({ attributes }) => attributes.type === "password");
  const fieldOf = ({ attributes: { name = "", type } }: HTMLElement): Field => ({
    name: `${method} ${kindOf(action.pathname)}, ${name}`,
    max,
    encode: isUpload ? String : inForm,
    send: (text) => send(name, type === "file" ? new File([text], "file") : text),
    hasPassword,
  });
  return {
    fields: controls.filter(({ attributes }) => !NOT_TYPED.has(attributes.type ?? "")).map(fieldOf),
    files: controls.filter(({ attributes }) => attributes.type === "file").map(fieldOf),
  };
}
