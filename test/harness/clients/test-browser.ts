import { type HTMLElement, parse } from "node-html-parser";
import { CookieJar } from "tough-cookie";
import type { TestUser } from "../service.ts";

/** Where a browser ended: a page, or the URL of an app that it was redirected to. */
export type Page = { url: string; status: number; headers: Headers; html: HTMLElement; text: string };

/** The values of a form; for checkboxes with one name, those that are checked. */
export type Filled = Record<string, string | string[] | File>;

/**
 * A browser without JavaScript: it keeps cookies, follows redirects within the service, stops at redirects to other
 * origins, and submits forms with their hidden fields.
 */
export class TestBrowser {
  readonly jar = new CookieJar();
  /** False: redirects are returned instead of followed. */
  follows = true;
  accept = "text/html";
  readonly #origin: string;

  constructor(origin: string) {
    this.#origin = origin;
  }

  async open(url: string, init: RequestInit = {}): Promise<Page> {
    const headers = new Headers(init.headers);
    const cookie = await this.jar.getCookieString(url);
    if (cookie) headers.set("cookie", cookie);
    if (!headers.has("accept")) headers.set("accept", this.accept);
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) await this.jar.setCookie(line, url);
    const location = response.headers.get("location");
    const { status, headers: received } = response;
    const text = await response.text();
    if (!location || !this.follows) return { url, status, headers: received, html: parse(text), text };
    const next = new URL(location, url);
    if (next.origin === this.#origin) return this.open(next.href);
    return { url: next.href, status, headers: received, html: parse(""), text };
  }

  /** Submits a form of a page, by default the first one, with its hidden fields and the given values. */
  submit(page: Page, fields: Filled, form: HTMLElement | null = page.html.querySelector("form")) {
    if (!form) throw new Error(`no form at ${page.url}:\n${page.text}`);
    const isUpload = form.attributes.enctype === "multipart/form-data";
    const defaults = defaultsOf(form);
    const body = isUpload ? new FormData() : new URLSearchParams();
    for (const [name, value] of defaults) if (!Object.hasOwn(fields, name)) add(name, value);
    for (const [name, values] of Object.entries(fields))
      for (const value of [values].flat()) add(name, value);
    const action = new URL(form.attributes.action ?? "", page.url);
    if (form.attributes.method?.toLowerCase() === "post")
      return this.open(action.href, { method: "POST", body, headers: { origin: this.#origin } });
    action.search = new URLSearchParams(body as URLSearchParams).toString();
    return this.open(action.href);

    /** The text of a file's field is its content. Without an upload, a form has the name of the file. */
    function add(name: string, value: string | File): void {
      const isFile = form?.querySelector(`input[name="${name}"]`)?.attributes.type === "file";
      if (body instanceof URLSearchParams) body.append(name, value instanceof File ? value.name : value);
      else if (isFile && typeof value === "string")
        body.append(name, new File([value], value && "links.csv"));
      else body.append(name, value as string);
    }
  }

  press(page: Page, text: string, fields: Filled = {}): Promise<Page> {
    const button = page.html.querySelectorAll("button").find((candidate) => candidate.text.trim() === text);
    if (!button) throw new Error(`no button "${text}" at ${page.url}:\n${page.text}`);
    return this.click(page, button, fields);
  }

  click(page: Page, button: HTMLElement, fields: Filled = {}): Promise<Page> {
    const { name, value = "", form } = button.attributes;
    const owner = form ? page.html.querySelector(`form[id="${form}"]`) : button.closest("form");
    return this.submit(page, { ...fields, ...(name && { [name]: value }) }, owner);
  }

  signIn(page: Page, { username, password }: TestUser): Promise<Page> {
    return this.press(page, "Sign in", { username, password });
  }
}

function defaultsOf(form: HTMLElement): URLSearchParams {
  const body = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    const { name, value = "", type } = input.attributes;
    if (!name || (["radio", "checkbox"].includes(type ?? "") && input.attributes.checked === undefined))
      continue;
    body.append(name, value);
  }
  for (const area of form.querySelectorAll("textarea")) body.set(area.attributes.name ?? "", area.text);
  for (const list of form.querySelectorAll("select")) {
    const chosen = list.querySelector("[selected]") ?? list.querySelector("option");
    body.set(list.attributes.name ?? "", chosen?.attributes.value ?? "");
  }
  return body;
}
