import { type HTMLElement, parse } from "node-html-parser";
import { CookieJar } from "tough-cookie";
import type { TestUser } from "./service.ts";

/** Where a browser ended: a page, or the address of an app that it was sent to. */
export type Page = { url: string; status: number; headers: Headers; html: HTMLElement; text: string };

/** What is filled in; of boxes with one name, those that are ticked. */
type Filled = Record<string, string | string[]>;

/**
 * A person at a browser without JavaScript: keeps cookies, follows redirects within the service, stops where it is
 * sent to another origin, fills in forms as they are.
 */
export class Person {
  readonly jar = new CookieJar();
  /** False: an answer that redirects is returned instead of followed. */
  follows = true;
  readonly #origin: string;

  constructor(origin: string) {
    this.#origin = origin;
  }

  /** Opens an address and follows where it leads. */
  async open(url: string, init: RequestInit = {}): Promise<Page> {
    const headers = new Headers(init.headers);
    const cookie = await this.jar.getCookieString(url);
    if (cookie) headers.set("cookie", cookie);
    if (!headers.has("accept")) headers.set("accept", "text/html");
    const response = await fetch(url, { ...init, headers, redirect: "manual" });
    for (const line of response.headers.getSetCookie()) await this.jar.setCookie(line, url);
    const location = response.headers.get("location");
    const text = await response.text();
    if (!location || !this.follows)
      return { url, status: response.status, headers: response.headers, html: parse(text), text };
    const next = new URL(location, url);
    if (next.origin !== this.#origin) {
      return { url: next.href, status: response.status, headers: response.headers, html: parse(""), text };
    }
    return this.open(next.href);
  }

  /** Sends a form of a page, the first one by default, with its hidden fields and what was filled in. */
  submit(
    page: Page,
    fields: Filled,
    form: HTMLElement | null = page.html.querySelector("form"),
  ): Promise<Page> {
    if (!form) throw new Error(`no form at ${page.url}:\n${page.text}`);
    const body = new URLSearchParams();
    for (const input of form.querySelectorAll("input")) {
      const { name, value = "", type } = input.attributes;
      if (!name || (["radio", "checkbox"].includes(type ?? "") && input.attributes.checked === undefined))
        continue;
      if (type === "checkbox") body.append(name, value);
      else body.set(name, value);
    }
    for (const area of form.querySelectorAll("textarea")) body.set(area.attributes.name ?? "", area.text);
    for (const list of form.querySelectorAll("select")) {
      const chosen = list.querySelector("[selected]") ?? list.querySelector("option");
      body.set(list.attributes.name ?? "", chosen?.attributes.value ?? "");
    }
    for (const [name, values] of Object.entries(fields)) {
      body.delete(name);
      for (const value of [values].flat()) body.append(name, value);
    }
    const action = new URL(form.attributes.action ?? "", page.url).href;
    return this.open(action, { method: "POST", body, headers: { origin: this.#origin } });
  }

  /** Presses a button by its text, that of another form than the first one as well. */
  press(page: Page, text: string, fields: Filled = {}): Promise<Page> {
    const button = page.html.querySelectorAll("button").find((candidate) => candidate.text.trim() === text);
    if (!button) throw new Error(`no button "${text}" at ${page.url}:\n${page.text}`);
    const { name, value = "" } = button.attributes;
    return this.submit(page, { ...fields, ...(name && { [name]: value }) }, button.closest("form"));
  }

  /** Signs in at the sign-in page. */
  signIn(page: Page, { username, password }: TestUser): Promise<Page> {
    return this.press(page, "Sign in", { username, password });
  }
}
