import { generateKeyPairSync } from "node:crypto";
import test from "ava";
import type { Role } from "../../adapters/organizations/store.ts";
import { apiAt, isMissing, isProblem } from "../harness/clients/api.ts";
import { tokensFor } from "../harness/clients/authorization.ts";
import { browserOf, createTeam } from "../harness/clients/dashboard.ts";
import { GITHUB_RULE } from "../harness/clients/workload.ts";
import { collectRouters } from "../harness/routers.ts";
import { OPERATOR, startTestService } from "../harness/service.ts";

const collected = collectRouters();
const service = await startTestService();
const team = await createTeam(service);
const suspended = await createTeam(service);
const guarded = await createTeam(service);
const { suspensions, organizationSettings } = service.storage;
await suspensions.suspend(suspended.organization.id, "Phishing", OPERATOR);
await organizationSettings.change(guarded.organization.id, { requiresSecondFactor: true }, OPERATOR);
const token = await service.token(await service.createOrganization());
const { browser } = await browserOf(service, team.owner);

const ALL: Role[] = ["owner", "admin", "member"];
const MANAGERS: Role[] = ["owner", "admin"];
const OWNERS: Role[] = ["owner"];

/** Who may use a route of an organization. The first rule that fits counts. */
const RULES: [route: RegExp, roles: Role[]][] = [
  [/^(GET|POST) \/delete$|^DELETE $/, OWNERS],
  [/ \/members\/:user_id\/(reset-link|sign-out)/, OWNERS],
  [/ \/members\/require-second-factor$/, OWNERS],
  [/ \/client\/(disable|enable|fapi|require-dpop)$/, OWNERS],
  [/ \/apps\/enterprise-authorization$/, OWNERS],
  [/ \/(client|workload-identity|webhooks|domains|invitations|fallback-url|time-zone)\b/, MANAGERS],
  [/ \/audit(\.csv)?$/, MANAGERS],
  [/ \/apps\/approve/, MANAGERS],
  [/^(PUT|POST) \/(apps|plan)$|^GET \/plan\/:plan$/, MANAGERS],
  [/ \/members\/:user_id(\/(delete|role))?$/, MANAGERS],
  [/^(PATCH|POST) $/, MANAGERS],
  [/ \/(links|analytics)\b/, ALL],
  [/ \/members\/me\b/, ALL],
  [/ \/apps\/:grant_id(\/delete)?$/, ALL],
  [/^POST \/checklist$/, ALL],
  [/^GET (\/(apps|connect|members|plan|settings))?$/, ALL],
];

const ORGANIZATION = "/dashboard/organizations/:id";
const routes = [...collected].flatMap(({ stack }) =>
  stack
    .filter(({ methods, path }) => methods.length > 0 && String(path).startsWith(ORGANIZATION))
    .map(({ methods, path }) => `${methods.at(-1)} ${String(path).slice(ORGANIZATION.length)}`),
);

/** The things of another organization, by the parameter that names them. */
const theirs = await createThings();

async function createThings(): Promise<Record<string, string>> {
  const { stranger, other } = team;
  const base = `/dashboard/organizations/${other.id}`;
  type Created = { id: string; invitation?: Created; approved_app?: Created };
  const create = async (path: string, json: object) => {
    const { body } = await stranger.api.send<Created>("POST", base + path, { json });
    return (body.invitation ?? body.approved_app ?? body).id;
  };
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const app = await service.createOrganization();
  await create("/client/rotate", {});
  await tokensFor(service, app, stranger, { organizationId: other.id });
  const { secrets } = (await stranger.api.get<{ secrets: { id: string }[] }>(`${base}/client`)).body;
  const { data } = (await stranger.api.get<{ data: { id: string }[] }>(`${base}/apps`)).body;
  const webhook = { url: "https://hooks.example.com/", events: ["link.created"], enabled: false };
  const things: Record<string, string | undefined> = {
    link_id: await create("/links", { url: "https://example.com/" }),
    webhook_id: await create("/webhooks", webhook),
    domain_id: await create("/domains", { host: "go.others.example" }),
    key_id: await create("/client/keys", { key: publicKey.export({ format: "jwk" }) }),
    rule_id: await create("/workload-identity", GITHUB_RULE),
    invitation_id: await create("/invitations", {}),
    approval_id: await create("/apps/approved", { client_id: app.clientId }),
    secret_id: secrets[1]?.id,
    grant_id: data[0]?.id,
    user_id: stranger.id,
  };
  const missing = Object.keys(things).filter((name) => !things[name]);
  if (missing.length > 0) throw new Error(`not created: ${missing}`);
  return things as Record<string, string>;
}

/** Returns the method, the path with the IDs of the other organization, and a body that changes what it names. */
function requestOf(route: string, base: string): [method: string, path: string, options: { json?: object }] {
  const [method = "", pattern = ""] = route.split(" ");
  const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => theirs[name] ?? "unknown");
  const [, named] = /:(\w+)$/.exec(pattern) ?? [];
  const changes: Record<string, object> = {
    link_id: { archived: true },
    webhook_id: { enabled: true },
    domain_id: { default: true },
    user_id: { role: "member" },
  };
  const hasBody = ["POST", "PUT", "PATCH"].includes(method);
  return [method, base + path, hasBody ? { json: changes[named ?? ""] ?? {} } : {}];
}

for (const route of routes) {
  const roles = RULES.find(([rule]) => rule.test(route))?.[1] ?? [];
  const isRead = route.startsWith("GET ");

  test(`${route} is allowed for ${roles.join(", ")} only, and not while it is suspended`, async (t) => {
    t.not(roles.length, 0, "a rule says who may use the route");
    // No change is made: an allowed one gets as far as the suspension.
    const { base, ...members } = isRead ? team : suspended;
    for (const role of ALL) {
      const reply = await members[role].api.send(...requestOf(route, base));
      if (!roles.includes(role)) isProblem(t, reply, { status: 403, code: "role_required" });
      else if (isRead) t.true([200, 404, 422].includes(reply.status), `${role}: ${reply.text.slice(0, 300)}`);
      else isProblem(t, reply, { status: 403, code: "organization_suspended" });
    }
    if (isRead) t.not((await suspended.owner.api.send(...requestOf(route, suspended.base))).status, 403);
  });

  test(`${route} is refused to strangers, API tokens, visitors and forged forms, and without a required second factor`, async (t) => {
    const request = requestOf(route, team.base);
    isMissing(t, await team.stranger.api.send(...request));
    isProblem(t, await apiAt(service.url).send(...request), { status: 401, code: "sign_in_required" });
    t.is((await apiAt(service.url, token).send(...request)).status, 401);
    const unproved = await guarded.owner.api.send(...requestOf(route, guarded.base));
    isProblem(t, unproved, { status: 403, code: "second_factor_setup_required" });
    if (isRead) return;
    const [method, path] = request;
    const headers = { origin: service.url, accept: "application/json" };
    const body = new URLSearchParams({ csrf: "a".repeat(43) });
    const forged = await browser.open(service.url + path, { method, headers, body });
    t.is(forged.status, 403);
    t.regex(forged.text, /"code":"invalid_csrf_token"/);
  });
}

test("nothing of another organization is found below the user's own", async (t) => {
  const named = routes.filter((route) => Object.keys(theirs).some((name) => route.includes(`:${name}`)));
  t.true(named.length > 40);
  const { stranger, owner, other, base } = team;
  const lists = "links domains webhooks client workload-identity invitations apps members".split(" ");
  const look = async (list: string) =>
    (await stranger.api.get<object>(`/dashboard/organizations/${other.id}/${list}`)).body;
  const stateOf = () => Promise.all(lists.map(look));
  const before = await stateOf();
  for (const route of named) {
    const { status, text } = await owner.api.send(...requestOf(route, base));
    t.is(status, 404, `${route}: ${text.slice(0, 200)}`);
  }
  t.deepEqual(await stateOf(), before);
  isMissing(t, await owner.api.send("GET", "/dashboard/organizations/org_unknown"));
});
