import type { ExecutionContext } from "ava";
import type { TestService } from "../service.ts";
import type { LinkBody, PageBody } from "./api.ts";
import { browserOf, createTeam } from "./dashboard.ts";
import type { Page } from "./test-browser.ts";

export async function linksInBrowser(service: TestService) {
  const team = await createTeam(service);
  const path = `${team.base}/links`;
  const { api } = team.member;
  const { browser } = await browserOf(service, team.member);
  return {
    ...team,
    path,
    browser,
    open: (address = "") => browser.open(service.url + path + address),
    create: async (fields: object = {}) =>
      (await api.send<LinkBody>("POST", path, { json: { url: "https://example.com/", ...fields } })).body,
    look: async (id: string) => (await api.get(`${path}/${id}`)).body,
    list: async () => (await api.get<PageBody>(path)).body.data,
  };
}

/** Asserts that a page shows the error of a field where screen readers announce it with the field. */
export function isMarked(t: ExecutionContext, page: Page, field: string, message: RegExp) {
  const input = page.html.querySelector(`[name=${field}]`);
  t.is(input?.attributes["aria-invalid"], "true");
  t.true(input?.attributes["aria-describedby"]?.split(" ").includes(`${field}-error`));
  t.regex(page.html.querySelector(`#${field}-error`)?.text ?? "", message);
  t.is(page.html.querySelectorAll("[aria-invalid]").length, 1);
  t.truthy(page.html.querySelector("[role=alert]"));
}

export function typedIn(page: Page, name: string): string | undefined {
  const input = page.html.querySelector(`main [name=${name}]`);
  const chosen = input?.querySelector("[selected]");
  return (chosen ?? input)?.attributes.value;
}
