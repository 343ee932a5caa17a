import { generateKeyPairSync } from "node:crypto";
import test, { type ExecutionContext } from "ava";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../../resources/events/delivered-events.ts";
import { EVENT_DATA_SCHEMAS } from "../../../resources/events/schemas.ts";
import { linkSchema } from "../../../resources/links/schema.ts";
import { apiAt } from "../../harness/clients/api.ts";
import { tokensFor } from "../../harness/clients/authorization.ts";
import { auditOf, createColleague, createTeam, type Team } from "../../harness/clients/dashboard.ts";
import { importLinks } from "../../harness/clients/link-import.ts";
import { addTotp, logIn, proveFactor } from "../../harness/clients/second-factor.ts";
import { GITHUB_RULE } from "../../harness/clients/workload.ts";
import { providerSettings } from "../../harness/providers/identity-provider.ts";
import { OPERATOR, startTestService } from "../../harness/service.ts";
import { startReceiver, uniqueUrl, until, type WebhookBody } from "../../harness/webhooks.ts";

type Change = (team: Team) => Promise<unknown>;
type Type = keyof typeof EVENT_DATA_SCHEMAS;

const receiver = await startReceiver();
// The changes never ask the identity provider.
const service = await startTestService({
  ...providerSettings("http://localhost:1"),
  WEBHOOK_ALLOW_HOSTS: "127.0.0.1",
});

const WEBHOOK = { url: "https://example.com/hook", events: ["link.created"] };
const LINK = { url: "https://example.com/", title: "Title", expires_at: "2099-01-01T00:00:00.000Z" };
const CLIENT_ID = "https://claude.ai/oauth/claude-code-client-metadata";

type Created = { id: string; url: string; invitation: { id: string }; approved_app: { id: string } };

async function post({ base, owner }: Team, path: string, json: object = {}): Promise<Created> {
  return (await owner.api.send<Created>("POST", base + path, { json })).body;
}

const addKey = (team: Team) => {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  return post(team, "/client/keys", { key: publicKey.export({ format: "jwk" }) });
};

/** Returns a change that is one request of the owner. */
function by(method: string, path: string, json?: object): Change {
  return ({ base, owner }) => owner.api.send(method, base + path, json && { json });
}

/** Returns a change of what the owner has created before: a link, a webhook, or another thing. */
function after(path: string, created: object, method: string, below = "", json?: object): Change {
  return async (team) => {
    const url = path === "/webhooks" ? { url: uniqueUrl() } : {};
    const { id, invitation, approved_app } = await post(team, path, { ...created, ...url });
    const one = `${path}/${(invitation ?? approved_app)?.id ?? id}`;
    return team.owner.api.send(method, team.base + one + below, json && { json });
  };
}

/** Changes that an owner makes, by the event that each adds to the audit log. */
const AUDITED_CHANGES = {
  "organization.renamed": by("PATCH", "", { name: "New" }),
  "organization.allowed_clients_changed": by("PUT", "/apps", { allowed_clients: "none" }),
  "organization.member_apps_changed": by("PUT", "/apps", { member_apps: "approved" }),
  "organization.fallback_url_changed": by("PUT", "/fallback-url", { fallback_url: "https://example.com/" }),
  "organization.time_zone_changed": by("PUT", "/time-zone", { time_zone: "Europe/Berlin" }),
  "app.approved": by("POST", "/apps/approved", { client_id: CLIENT_ID }),
  "app.approval_withdrawn": after("/apps/approved", { client_id: CLIENT_ID }, "DELETE"),
  "enterprise_authorization.changed": by("PUT", "/apps/enterprise-authorization", { enabled: true }),
  "plan.changed": by("PUT", "/plan", { plan: "premium" }),
  "member.role_changed": ({ base, owner, member }) =>
    owner.api.send("PATCH", `${base}/members/${member.id}`, { json: { role: "admin" } }),
  "member.removed": ({ base, owner, member }) => owner.api.send("DELETE", `${base}/members/${member.id}`),
  "member.reset_link_created": ({ base, owner, member }) =>
    owner.api.send("POST", `${base}/members/${member.id}/reset-link`),
  "invitation.created": by("POST", "/invitations", {}),
  "client.secret_rotated": by("POST", "/client/rotate", {}),
  "client.redirect_uris_changed": by("PUT", "/client/redirect-uris", {
    redirect_uris: ["https://a.example/"],
  }),
  "client.profile_changed": by("PUT", "/client/profile", { client_name: "Reports" }),
  "client.secret_ended": async ({ base, owner }) => {
    await owner.api.send("POST", `${base}/client/rotate`, { json: {} });
    const { body } = await owner.api.send<{ secrets: { id: string }[] }>("GET", `${base}/client`);
    await owner.api.send("DELETE", `${base}/client/secrets/${body.secrets[1]?.id}`);
  },
  "client.secrets_removed": by("DELETE", "/client/secrets"),
  "client.key_added": addKey,
  "client.key_removed": async (team) => {
    const { id } = await addKey(team);
    await team.owner.api.send("DELETE", `${team.base}/client/keys/${id}`);
  },
  "client.fapi_changed": async (team) => {
    const { base, owner } = team;
    await addKey(team);
    await owner.api.send("DELETE", `${base}/client/secrets`);
    await owner.api.send("PUT", `${base}/client/fapi`, { json: { fapi: true } });
  },
  "trust_rule.created": by("POST", "/workload-identity", GITHUB_RULE),
  "trust_rule.deleted": after("/workload-identity", GITHUB_RULE, "DELETE"),
  "domain.created": by("POST", "/domains", { host: "a.acme.example" }),
  "domain.updated": after("/domains", { host: "b.acme.example" }, "PATCH", "", { not_found_url: LINK.url }),
  "domain.deleted": after("/domains", { host: "c.acme.example" }, "DELETE"),
  "link.created": by("POST", "/links", LINK),
  "link.updated": after("/links", LINK, "PATCH", "", { archived: true }),
  "link.deleted": after("/links", LINK, "DELETE"),
  "links.imported": ({ base, owner }) => importLinks(owner.api, base, "url\nhttps://example.com/\n"),
  "webhook.created": by("POST", "/webhooks", WEBHOOK),
  "webhook.updated": after("/webhooks", WEBHOOK, "PATCH", "", { enabled: false }),
  "webhook.secret_rotated": after("/webhooks", WEBHOOK, "POST", "/rotate-secret"),
  "webhook.secret_viewed": after("/webhooks", WEBHOOK, "POST", "/secret"),
  "webhook.deleted": after("/webhooks", WEBHOOK, "DELETE"),
  "authorization.revoked": async ({ base, owner, member, organization }) => {
    const app = await service.createOrganization();
    await tokensFor(service, app, member, { organizationId: organization.id });
    const { body } = await owner.api.send<{ data: { id: string }[] }>("GET", `${base}/apps`);
    await owner.api.send("DELETE", `${base}/apps/${body.data[0]?.id}`);
  },
  "invitation.revoked": after("/invitations", {}, "DELETE"),
  // Last: other changes use bearer tokens.
  "organization.dpop_requirement_changed": by("PUT", "/client/require-dpop", { require_dpop: true }),
} satisfies Record<string, Change>;

/** Signs in as another owner with a second factor, after a wrong code, requires one of everyone and stops requiring it, and removes it. */
async function operateSecondFactors({ base, organization }: Team): Promise<void> {
  const owner = await createColleague(service, organization.id, "owner");
  const guarded = await addTotp(service, owner);
  const { body } = await logIn(service, guarded);
  await proveFactor(service, body.login_token, { totp: guarded.usedCode });
  const [recovery_code] = guarded.recoveryCodes;
  const done = await proveFactor(service, body.login_token, { recovery_code });
  const api = apiAt(service.url, done.body.access_token);
  await api.send("POST", "/dashboard/account/recovery-codes");
  const path = `${base}/members/require-second-factor`;
  for (const require_second_factor of [true, false])
    await api.send("PUT", path, { json: { require_second_factor } });
  await api.send("DELETE", "/dashboard/account/totp");
  await service.storage.secondFactors.reset(owner.id, OPERATOR);
}

/** Disables and suspends everything of a team as the operator, and enables and resumes it. */
async function operateSwitches(team: Team): Promise<void> {
  const { admin, organization } = team;
  const { id } = organization;
  const { storage } = service;
  const link = await post(team, "/links", LINK);
  await storage.disabledLinks.disable(link.id, "Phishing", OPERATOR);
  await storage.disabledLinks.enable(link.id, OPERATOR);
  await storage.clients.disable(id, "Leaked", OPERATOR);
  await storage.clients.enable(id, OPERATOR);
  await storage.disabledAccounts.signOut(admin.id, { apps: true }, OPERATOR);
  await storage.disabledAccounts.disable(admin.id, null, OPERATOR);
  await storage.disabledAccounts.enable(admin.id, OPERATOR);
  await storage.suspensions.suspend(id, "Phishing", OPERATOR);
  await storage.suspensions.resume(id, OPERATOR);
}

/** Changes of others, and what the service does itself. */
const OTHER_CHANGES: Change[] = [
  ({ member }) =>
    member.api.send("POST", "/dashboard/account/password", {
      json: { current_password: member.password, new_password: "an entirely new password" },
    }),
  async ({ admin }) => {
    const identity = { issuer: "https://idp.example", subject: admin.id };
    await service.storage.identities.link(admin.id, { ...identity, label: null }, { id: admin.id });
    await service.storage.identities.unlink(admin.id, identity, { id: admin.id });
  },
  async (team) => {
    receiver.respond("/gone", (response) => response.writeHead(410).end());
    receiver.exposeVerification("/gone");
    const { id } = await post(team, "/webhooks", { ...WEBHOOK, url: receiver.url("/gone") });
    const path = `${team.base}/webhooks/${id}`;
    await until(async () => ((await team.owner.api.get<WebhookBody>(path)).body.enabled ? undefined : true));
  },
  operateSwitches,
];

// The log of a deleted organization can't be read; clicks and test events aren't audited. Sign-ins, exports, replays,
// leaks, quotas and the DNS records of domains have tests of their own.
const NOT_SHOWN = ["organization.deleted", "link.clicked", "webhook.test"];
const ELSEWHERE =
  /^(member\.(sign_in|reauth|logged|session|data)|audit_log|token|client\.secret_leaked|webhook\.quota|domain\.(verified|record|taken))/;
const AUDITED = [...AUDIT_EVENTS, ...WEBHOOK_EVENTS].filter(
  (type) => !NOT_SHOWN.includes(type) && !ELSEWHERE.test(type),
);

const SNAKE_CASE = /^[a-z][a-z0-9]*(_[a-z0-9]+)*$/;
const RFC_3339_UTC = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z$/;
// Far above every count in an event, far below any time in epoch milliseconds.
const EPOCH_MS = 1e11;

/** Asserts that every key is in snake_case and every time an RFC 3339 string, at any depth. */
function hasPublicForm(t: ExecutionContext, value: unknown, path: string): void {
  if (typeof value === "number") t.true(value < EPOCH_MS, `${path} is an epoch time`);
  if (typeof value !== "object" || value === null) return;
  for (const [key, inner] of Object.entries(value)) {
    if (!Array.isArray(value)) t.regex(key, SNAKE_CASE, path);
    if (key.endsWith("_at") && inner !== null) t.regex(String(inner), RFC_3339_UTC, `${path}.${key}`);
    hasPublicForm(t, inner, `${path}.${key}`);
  }
}

/** Returns the keys of stored data that its public form doesn't have. A link is stored with names of its own. */
function hiddenKeysOf(type: Type, data: Record<string, unknown>): string[] {
  const keys = Object.keys(data).filter((key) => !Object.hasOwn(EVENT_DATA_SCHEMAS[type].shape, key));
  const nameOf = (key: string) => key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
  const linkKeys = Object.keys(data.link ?? {}).filter((key) => !(nameOf(key) in linkSchema.shape));
  return [...keys.map((key) => `${type}.${key}`), ...linkKeys.map((key) => `link.${key}`)];
}

test("every change is recorded once with its actor, and shown with snake_case keys and RFC 3339 times", async (t) => {
  const team = await createTeam(service, "free");
  const { owner, organization } = team;
  await service.storage.organizations.setPlan(organization.id, "growth", OPERATOR);
  const entriesOf = (type: string) =>
    service.storage.audit.list(organization.id, { types: [type as Type] }, 100);
  await operateSecondFactors(team);
  const { url } = await post(team, "/invitations");
  const guest = await createColleague(service, undefined);
  await guest.api.send("POST", new URL(url).pathname);
  const added = { user_id: guest.id, role: "member" };
  t.like((await entriesOf("member.added"))[0], { actor: guest.id, data: added });
  const { "member.removed": remove, ...changes } = AUDITED_CHANGES;
  const record = async ([type, change]: [type: string, change: Change]) => {
    const before = (await entriesOf(type)).length;
    await change(team);
    const [entry, ...earlier] = await entriesOf(type);
    t.is(earlier.length, before, `${type} is recorded once`);
    t.is(entry?.actor, owner.id, type);
    t.regex(entry?.address ?? "", /^(::1|(::ffff:)?127\.0\.0\.1)$/, type);
  };
  for (const change of Object.entries(changes)) await record(change);
  for (const change of OTHER_CHANGES) await change(team);
  await record(["member.removed", remove]);

  const data = await auditOf(team);
  const missing = AUDITED.filter((type) => !data.some((entry) => entry.type === type));
  t.deepEqual(missing, [], "not in the log");
  for (const entry of data) {
    hasPublicForm(t, entry, entry.type);
    t.true(entry.summary.length > 5, entry.type);
    if (entry.actor === owner.id) t.is(entry.actor_name, owner.username);
    t.deepEqual(EVENT_DATA_SCHEMAS[entry.type as Type].parse(entry.data), entry.data, entry.type);
  }

  await service.storage.audit.head(team.organization.id);
  const stored = await service.storage.audit.list(team.organization.id, {}, 100);
  const hidden = stored.flatMap(({ type, record }) => hiddenKeysOf(type, JSON.parse(record as string).data));
  t.deepEqual([...new Set(hidden)].sort(), ["link.organizationId", "link.version"], "only in the record");
});
