import type { ExecutionContext } from "ava";
import type { TestService } from "../service.ts";
import type { LinkBody } from "./api.ts";
import { browserOf, createTeam } from "./dashboard.ts";
import type { Page } from "./test-browser.ts";

export { follow } from "./visits.ts";

export function textsOn({ html }: Page, selector: string): string[] {
  return html.querySelectorAll(selector).map(({ text }) => text.trim());
}

export const alertOn = (page: Page): string => textsOn(page, "[role=alert]")[0] ?? "";

/** Creates a team, of which a user is signed in in a browser, with functions that use a part of its dashboard. */
export async function openSection<Item>(
  service: TestService,
  section: string,
  role: "owner" | "member" = "owner",
) {
  const team = await createTeam(service);
  const path = `${team.base}/${section}`;
  const { api } = team[role];
  const { browser } = await browserOf(service, team[role]);
  return {
    ...team,
    path,
    api,
    browser,
    open: (address = "") => browser.open(service.url + path + address),
    look: async (id: string) => (await api.get<Item>(`${path}/${id}`)).body,
    list: async () => (await api.get<{ data: Item[] }>(path)).body.data,
  };
}

export async function linksInBrowser(service: TestService) {
  const section = await openSection<LinkBody>(service, "links", "member");
  const { api, path } = section;
  return {
    ...section,
    create: async (fields: object = {}) =>
      (await api.send<LinkBody>("POST", path, { json: { url: "https://example.com/", ...fields } })).body,
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
