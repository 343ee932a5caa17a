import pLimit from "p-limit";
import type { Role } from "../../../adapters/organizations/store.ts";
import type { Plan } from "../../../resources/plans.ts";
import type { listAuditEntries } from "../../../server/operations/audit-log.ts";
import type { Result } from "../../../server/operations/operation.ts";
import { OPERATOR, postForm, type TestOrganization, type TestService, type TestUser } from "../service.ts";
import { type Api, apiAt } from "./api.ts";
import { TestBrowser } from "./test-browser.ts";

export type Colleague = TestUser & { api: Api; token: string };

// The service verifies a few passwords at a time, and the tests of a file create their users concurrently.
const fewAtOnce = pLimit(3);

export function createColleague(
  service: TestService,
  organizationId: string | undefined,
  role: Role = "owner",
): Promise<Colleague> {
  return fewAtOnce(async () => {
    const user = await service.createUser([]);
    if (organizationId)
      await service.storage.organizations.addMember(organizationId, user.id, role, OPERATOR);
    const token = await firstPartyToken(service, user);
    return { ...user, token, api: apiAt(service.url, token) };
  });
}

export async function firstPartyToken(service: Pick<TestService, "url">, { username, password }: TestUser) {
  const answer = await postForm(`${service.url}/auth/login`, { username, password });
  if (!answer.ok) throw new Error(`sign-in failed: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** Creates an organization with a member of each role, and a user of another organization. */
export async function createTeam(service: TestService, plan: Plan = "growth") {
  const { organization } = await service.storage.organizations.create("Team", plan, OPERATOR);
  const other = await service.storage.organizations.create("Others", "growth", OPERATOR);
  const [owner, admin, member, stranger] = await Promise.all([
    createColleague(service, organization.id, "owner"),
    createColleague(service, organization.id, "admin"),
    createColleague(service, organization.id, "member"),
    createColleague(service, other.organization.id, "owner"),
  ]);
  const base = `/dashboard/organizations/${organization.id}`;
  return { organization, other: other.organization, base, owner, admin, member, stranger };
}

export async function browserOf(service: TestService, user: TestUser) {
  const browser = new TestBrowser(service.url);
  const page = await fewAtOnce(async () =>
    browser.signIn(await browser.open(`${service.url}/dashboard`), user),
  );
  if (page.status !== 200) throw new Error(`sign-in failed: ${page.status} ${page.text}`);
  return { browser, page };
}

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
