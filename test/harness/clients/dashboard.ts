import pLimit from "p-limit";
import type { Role } from "../../adapters/organizations.ts";
import { OPERATOR } from "../../resources/events.ts";
import type { Plan } from "../../resources/plans.ts";
import { type Api, apiAt } from "./api.ts";
import { type Page, Person } from "./person.ts";
import { postForm, type TestService, type TestUser } from "./service.ts";

/** A person, with a first-party token for the dashboard's JSON. */
export type Colleague = TestUser & { api: Api; token: string };

// Passwords are checked a few at a time, and the tests of a file make their people at once.
const fewAtOnce = pLimit(3);

/** A person of an organization with a role there, signed in by a token. */
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

/** Signs in as scripts do. */
export async function firstPartyToken(
  service: Pick<TestService, "url">,
  { username, password }: TestUser,
): Promise<string> {
  const answer = await postForm(`${service.url}/auth/login`, { username, password });
  if (!answer.ok) throw new Error(`not signed in: ${answer.status} ${await answer.text()}`);
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** An organization with a person of each role, and somebody from another organization. */
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

/** A browser in which a person is signed in, and the page it shows then. */
export async function browserOf(
  service: TestService,
  user: TestUser,
): Promise<{ person: Person; page: Page }> {
  const person = new Person(service.url);
  const page = await fewAtOnce(async () =>
    person.signIn(await person.open(`${service.url}/dashboard`), user),
  );
  if (page.status !== 200) throw new Error(`not signed in: ${page.status} ${page.text}`);
  return { person, page };
}
