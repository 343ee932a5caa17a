import { generateKeyPairSync } from "node:crypto";
import { OPERATOR } from "../../resources/events/types.ts";
import { apiAt, type LinkBody } from "./clients/api.ts";
import { type Colleague, createColleague, type createTeam } from "./clients/dashboard.ts";
import { tokensFor } from "./clients/flow.ts";
import { importLinks } from "./clients/link-import.ts";
import { addTotp, logIn, proveFactor } from "./clients/second-factor.ts";
import type { TestService } from "./service.ts";
import { uniqueUrl } from "./webhooks.ts";

type Team = Awaited<ReturnType<typeof createTeam>>;
type Change = (team: Team, service: TestService) => Promise<unknown>;

async function createLink({ api }: Colleague, base: string): Promise<LinkBody> {
  const json = { url: "https://example.com/", title: "Title", expires_at: "2099-01-01T00:00:00.000Z" };
  return (await api.send<LinkBody>("POST", `${base}/links`, { json })).body;
}

async function createWebhook({ api }: Colleague, base: string): Promise<{ id: string }> {
  const json = { url: uniqueUrl(), events: ["link.created"] };
  return (await api.send<{ id: string }>("POST", `${base}/webhooks`, { json })).body;
}

async function createTrustRule({ base, owner }: Team): Promise<{ id: string }> {
  const json = {
    name: "Deploy",
    issuer: "https://token.actions.githubusercontent.com",
    subject: "repo:octo-org/octo-repo:ref:refs/heads/main",
    claims: { repository_owner_id: "65" },
    scopes: ["links:write"],
  };
  return (await owner.api.send<{ id: string }>("POST", `${base}/workload-identity`, { json })).body;
}

async function createInvitation({ base, owner }: Team): Promise<{ url: string; invitation: { id: string } }> {
  const path = `${base}/invitations`;
  return (await owner.api.send<{ url: string; invitation: { id: string } }>("POST", path, { json: {} })).body;
}

async function addKey({ base, owner }: Pick<Team, "base" | "owner">) {
  const { publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const json = { key: publicKey.export({ format: "jwk" }) };
  return owner.api.send<{ id: string }>("POST", `${base}/client/keys`, { json });
}

function approveApp({ base, owner }: Team) {
  const json = { client_id: "https://claude.ai/oauth/claude-code-client-metadata" };
  return owner.api.send<{ approved_app: { id: string } }>("POST", `${base}/apps/approved`, { json });
}

/** Changes that an owner makes, by the event that each adds to the audit log. */
export const AUDITED_CHANGES: Record<string, Change> = {
  "organization.renamed": ({ base, owner }) => owner.api.send("PATCH", base, { json: { name: "New" } }),
  "organization.allowed_clients_changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/apps`, { json: { allowed_clients: "none" } }),
  "organization.member_apps_changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/apps`, { json: { member_apps: "approved" } }),
  "organization.fallback_url_changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/fallback-url`, { json: { fallback_url: "https://example.com/" } }),
  "app.approved": approveApp,
  "app.approval_withdrawn": async (team) => {
    const { body } = await approveApp(team);
    await team.owner.api.send("DELETE", `${team.base}/apps/approved/${body.approved_app.id}`);
  },
  "enterprise_authorization.changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/apps/enterprise-authorization`, { json: { enabled: true } }),
  "plan.changed": ({ base, owner }) => owner.api.send("PUT", `${base}/plan`, { json: { plan: "premium" } }),
  "member.role_changed": ({ base, owner, member }) =>
    owner.api.send("PATCH", `${base}/members/${member.id}`, { json: { role: "admin" } }),
  "member.removed": ({ base, owner, member }) => owner.api.send("DELETE", `${base}/members/${member.id}`),
  "member.reset_link_created": ({ base, owner, member }) =>
    owner.api.send("POST", `${base}/members/${member.id}/reset-link`),
  "invitation.created": createInvitation,
  "client.secret_rotated": ({ base, owner }) => owner.api.send("POST", `${base}/client/rotate`, { json: {} }),
  "client.redirect_uris_changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/client/redirect-uris`, {
      json: { redirect_uris: ["https://a.example/"] },
    }),
  "client.profile_changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/client/profile`, { json: { client_name: "Reports" } }),
  "client.secret_ended": async ({ base, owner }) => {
    await owner.api.send("POST", `${base}/client/rotate`, { json: {} });
    const { body } = await owner.api.send<{ secrets: { id: string }[] }>("GET", `${base}/client`);
    await owner.api.send("DELETE", `${base}/client/secrets/${body.secrets[1]?.id}`);
  },
  "client.secrets_removed": ({ base, owner }) => owner.api.send("DELETE", `${base}/client/secrets`),
  "client.key_added": addKey,
  "client.key_removed": async ({ base, owner }) => {
    const { body } = await addKey({ base, owner });
    await owner.api.send("DELETE", `${base}/client/keys/${body.id}`);
  },
  "client.fapi_changed": async ({ base, owner }) => {
    await addKey({ base, owner });
    await owner.api.send("DELETE", `${base}/client/secrets`);
    await owner.api.send("PUT", `${base}/client/fapi`, { json: { fapi: true } });
  },
  "trust_rule.created": createTrustRule,
  "trust_rule.deleted": async (team) => {
    const { id } = await createTrustRule(team);
    await team.owner.api.send("DELETE", `${team.base}/workload-identity/${id}`);
  },
  "link.created": ({ base, owner }) => createLink(owner, base),
  "link.updated": async ({ base, owner }) => {
    const { id } = await createLink(owner, base);
    await owner.api.send("PATCH", `${base}/links/${id}`, { json: { archived: true } });
  },
  "link.deleted": async ({ base, owner }) =>
    owner.api.send("DELETE", `${base}/links/${(await createLink(owner, base)).id}`),
  "links.imported": ({ base, owner }) => importLinks(owner.api, base, "url\nhttps://example.com/\n"),
  "webhook.created": ({ base, owner }) => createWebhook(owner, base),
  "webhook.updated": async ({ base, owner }) => {
    const { id } = await createWebhook(owner, base);
    await owner.api.send("PATCH", `${base}/webhooks/${id}`, { json: { enabled: false } });
  },
  "webhook.secret_rotated": async ({ base, owner }) =>
    owner.api.send("POST", `${base}/webhooks/${(await createWebhook(owner, base)).id}/rotate-secret`),
  "webhook.secret_viewed": async ({ base, owner }) =>
    owner.api.send("POST", `${base}/webhooks/${(await createWebhook(owner, base)).id}/secret`),
  "webhook.deleted": async ({ base, owner }) =>
    owner.api.send("DELETE", `${base}/webhooks/${(await createWebhook(owner, base)).id}`),
  "authorization.revoked": async ({ base, owner, member, organization }, service) => {
    const app = await service.createOrganization();
    await tokensFor(service, app, member, { organizationId: organization.id });
    const { body } = await owner.api.send<{ data: { id: string }[] }>("GET", `${base}/apps`);
    await owner.api.send("DELETE", `${base}/apps/${body.data[0]?.id}`);
  },
  "invitation.revoked": async (team) => {
    const { invitation } = await createInvitation(team);
    await team.owner.api.send("DELETE", `${team.base}/invitations/${invitation.id}`);
  },
  // Last: other changes use bearer tokens.
  "organization.dpop_requirement_changed": ({ base, owner }) =>
    owner.api.send("PUT", `${base}/client/require-dpop`, { json: { require_dpop: true } }),
};

/** Signs in as another owner with a second factor, after a wrong code, requires one of everyone and stops requiring it, and removes it. */
export async function operateSecondFactors(
  { base, organization }: Team,
  service: TestService,
): Promise<void> {
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
export async function operateSwitches(
  { organization: { id }, base, owner, admin }: Team,
  { storage }: TestService,
): Promise<void> {
  const link = await createLink(owner, base);
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

/** Invites a new user to a team, who accepts. */
export async function joinByInvitation(team: Team, service: TestService): Promise<Colleague> {
  const { url } = await createInvitation(team);
  const guest = await createColleague(service, undefined);
  await guest.api.send("POST", new URL(url).pathname);
  return guest;
}
