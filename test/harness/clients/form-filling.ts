import { generateKeyPairSync } from "node:crypto";
import type { HTMLElement } from "node-html-parser";
import type { TestUser } from "../service.ts";
import { codeOf } from "./second-factor.ts";
import type { Filled, Page } from "./test-browser.ts";

let count = 0;
const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** What a user enters in a field by its name; the type of the field decides about all others. */
const BY_NAME: Record<string, (page: Page, user: TestUser) => string> = {
  // Some deletions have to be confirmed with the name of what is deleted.
  name: ({ html }) => /^Delete (.*)$/.exec(html.querySelector("h1")?.text ?? "")?.[1] ?? `Name ${++count}`,
  username: ({ url }, { username }) => (url.includes("/register") ? `visitor${++count}` : username),
  password: (_page, { password }) => password,
  current_password: (_page, { password }) => password,
  new_password: () => `another fine password ${++count}`,
  code: (page) => codeOf(secretOn(page)),
  issuer: () => `https://gitlab-${++count}.example`,
  key: () => publicKey.export({ type: "spki", format: "pem" }).toString(),
};

const BY_TYPE: Record<string, () => string> = {
  url: () => `https://hooks.northwind.invalid/${++count}`,
  email: () => `user${++count}@northwind.example`,
  number: () => "1",
  file: () => `url\nhttps://example.com/${++count}\n`,
};

/** Fills in the required fields of a form that are still empty, and chooses the first of several radio buttons or rows. */
export function fillRequired(form: HTMLElement, page: Page, user: TestUser): Filled {
  const filled: Filled = {};
  for (const field of form.querySelectorAll("input[required], textarea[required]")) {
    const { name = "", type = "text", value, placeholder } = field.attributes;
    if (value || field.text) continue;
    const enter = BY_NAME[name] ?? BY_TYPE[type] ?? (() => placeholder ?? `text ${++count}`);
    filled[name] = enter(page, user);
  }
  for (const radio of form.querySelectorAll("input[type=radio]")) {
    const { name = "", value = "" } = radio.attributes;
    if (!form.querySelector(`[name="${name}"][checked]`)) filled[name] ??= value;
  }
  const row = page.html.querySelector(`tbody [type=checkbox][form="${form.id}"]`);
  if (row) filled[row.attributes.name ?? ""] = row.attributes.value ?? "";
  return filled;
}

export function secretOn({ html }: Page): string {
  return html.querySelector(".copyable code")?.text.replaceAll(" ", "") ?? "";
}
