import { OPERATOR } from "../../../resources/events/types.ts";
import type { listAuditEntries } from "../../../server/operations/audit-log.ts";
import type { Result } from "../../../server/operations/operation.ts";
import type { TestOrganization, TestService, TestUser } from "../service.ts";
import { browserOf, createTeam } from "./dashboard.ts";
import type { Page } from "./test-browser.ts";

export { follow } from "./visits.ts";

export type Team = Awaited<ReturnType<typeof createTeam>>;

/** Creates a team whose organization got its client with an upgrade, and the secret of the client. */
export async function createTeamWithClient(service: TestService) {
  const team = await createTeam(service, "free");
  const { id, name } = team.organization;
  const change = await service.storage.organizations.setPlan(id, "growth", OPERATOR);
  if (!change?.client) throw new Error("the upgrade created no client");
  const client: TestOrganization = { id, name, ...change.client };
  return { ...team, client };
}

export type AuditEntry = Result<typeof listAuditEntries>["data"][number];

/** Returns up to 100 of the newest entries of a team's audit log. */
export async function auditOf({ base, owner }: Pick<Team, "base" | "owner">, query = "") {
  const { body } = await owner.api.get<{ data: AuditEntry[] }>(`${base}/audit?limit=100${query}`);
  return body.data;
}

export async function openAs(service: TestService, user: TestUser, path: string) {
  const { browser } = await browserOf(service, user);
  return { browser, page: await browser.open(service.url + path) };
}

export function textsOn({ html }: Page, selector: string): string[] {
  return html.querySelectorAll(selector).map(({ text }) => text.trim());
}

export function alertOn(page: Page): string {
  return textsOn(page, "[role=alert]")[0] ?? "";
}
