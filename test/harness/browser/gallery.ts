import { randomUUID } from "node:crypto";
import type { DomainView } from "../../../resources/domains/schema.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { type Api, apiAt, type LinkBody } from "../clients/api.ts";
import { tokensFor } from "../clients/authorization.ts";
import { createKeyFor } from "../clients/client-key.ts";
import { firstPartyToken } from "../clients/dashboard.ts";
import { connectDocument, type DocumentClient } from "../clients/document-client.ts";
import { addRule } from "../clients/workload.ts";
import { advanceClock, DAY_MS } from "../clock.ts";
import type { TestOrganization, TestService } from "../service.ts";
import { createWebhook, deliveriesOf, type Receiver, until, waitForDelivery } from "../webhooks.ts";

export const LOCAL_APP = "http://127.0.0.1/callback";

/** Known clients with a metadata document: one on the web, and one on the user's computer. */
export const CLAUDE: DocumentClient = {
  clientId: "https://claude.ai/oauth/mcp-oauth-client-metadata",
  redirectUri: "https://claude.ai/api/mcp/auth_callback",
};
export const CLAUDE_CODE: DocumentClient = {
  clientId: "https://claude.ai/oauth/claude-code-client-metadata",
  redirectUri: "http://localhost:51234/callback",
};

const SITE = "https://northwind.example";
const JOB = "head-of-roasting-and-everything-else-that-is-brown";
const LINKS: Record<string, object> = {
  spring: {
    title: "Spring roasts",
    tags: ["campaign", "newsletter"],
    url: `${SITE}/shop/spring-roasts?utm_source=newsletter`,
  },
  ethiopia: { title: "Ethiopia Yirgacheffe, washed", tags: ["shop"], url: `${SITE}/shop/ethiopia` },
  "brew-guide": { title: "How to brew with a V60", tags: ["help"], url: `${SITE}/guides/v60` },
  opening: { title: "The shop opens in Malmö", tags: ["campaign"], url: `${SITE}/malmo`, max_clicks: 500 },
  jobs: { url: `https://careers.northwind.example/open-positions/${JOB}` },
};
const SLUGS = Object.keys(LINKS);
const REFERRERS = ["https://news.example/", "https://social.example/post/1", "", "https://search.example/"];

const pathOf = ({ id }: { id: string }) => `/dashboard/organizations/${id}`;

export type Gallery = Awaited<ReturnType<typeof createGallery>>;

export async function createGallery(service: TestService, receiver: Receiver) {
  const { organizations, clients } = service.storage;
  const owner = await service.createUser([], "ada.lovelace");
  const actor = { id: owner.id, address: "203.0.113.7" };
  const { organization } = await organizations.create("Northwind Coffee", "free", actor, owner.id);
  const { id } = organization;
  const client = (await organizations.setPlan(id, "growth", actor))?.client;
  const own = { ...organization, ...client } as TestOrganization;
  const admin = await service.createUser([id], "grace.hopper", "admin");
  const member = await service.createUser([id], "alan.turing@northwind.example");
  const second = await organizations.create("Ada’s side project", "growth", actor, owner.id);

  const keyed = await organizations.create("Northwind Roastery", "growth", actor, owner.id);
  await clients.removeSecrets(keyed.organization.id, actor);
  await createKeyFor(service, own);

  const suspended = await organizations.create("Northwind Giveaways", "growth", actor, owner.id);
  await service.storage.suspensions.suspend(suspended.organization.id, "Reported for phishing", OPERATOR);
  await clients.disable(keyed.organization.id, "A key leaked", actor);

  const { archived, disabled, locked, popular } = await fillLinks(service, own);
  await clients.rotateSecret(id, { overlapMs: 7 * DAY_MS, compromised: false }, actor);
  await clients.setRedirectUris(id, [`${SITE}/oauth/callback`, "http://localhost/callback"], actor);
  await addTrustRules(service, own);

  const studio = await service.createOrganization("Postcard Studio");
  const flows = await service.createOrganization("Flowline Automations");
  const granted = [
    [studio, owner, "links:read"],
    [flows, owner, "links:write webhooks:write"],
    [flows, member, "links:read"],
  ] as const;
  for (const [app, user, scope] of granted) {
    const choice = { organizationId: id, parameters: { scope } };
    const api = apiAt(service.url, (await tokensFor(service, app, user, choice)).access_token);
    await api.get("/v1/links");
    if (scope.includes("webhooks:write")) await fillAppWebhooks(api);
  }
  await clients.setRedirectUris(flows.id, [LOCAL_APP], OPERATOR);
  await connectDocument(service, CLAUDE_CODE, admin, id);

  const api = apiAt(service.url, await service.token(own));
  const webhooks = await fillWebhooks(api, receiver);
  const domains = await fillDomains(service, api);

  // A user with a new organization, and a user without an organization.
  const founder = await service.createUser([], "mary.jackson");
  const started = await organizations.create("Mary’s bakery", "free", { id: founder.id }, founder.id);
  const newcomer = await service.createUser([], "dorothy.vaughan");
  const adminApi = apiAt(service.url, await firstPartyToken(service, admin));
  await adminApi.send("POST", `/dashboard/organizations/${id}/webhooks`, {
    json: { url: "https://hooks.northwind.invalid/grace", events: ["link.deleted"], enabled: false },
  });
  const ownerApi = apiAt(service.url, await firstPartyToken(service, owner));
  const invited = await ownerApi.send<{ url: string }>("POST", `/dashboard/organizations/${id}/invitations`, {
    json: { role: "admin" },
  });

  return {
    users: { owner, admin, member, founder, newcomer },
    organization: own,
    /** Organizations with a history, without one, without a client secret, suspended, and on the Free plan. */
    paths: {
      own: pathOf(own),
      ownEmpty: pathOf(second.organization),
      ownKeyed: pathOf(keyed.organization),
      ownSuspended: pathOf(suspended.organization),
      ownFresh: pathOf(started.organization),
    },
    studio,
    flows,
    archived,
    disabled,
    locked,
    popular,
    ...webhooks,
    ...domains,
    invitation: invited.body.url,
  };
}

async function fillLinks(service: TestService, own: TestOrganization) {
  const first = apiAt(service.url, await service.token(own));
  const links = [];
  for (const [slug, fields] of Object.entries(LINKS)) links.push(await first.createLink({ slug, ...fields }));
  for (let day = 0; day < 28; day++) {
    advanceClock(DAY_MS);
    await Promise.all(Array.from({ length: (day * 7) % 11 }, (_, visit) => followLink(service, day, visit)));
  }
  const api = apiAt(service.url, await service.token(own));
  const archived = await api.createLink({ slug: "winter", title: "Winter roasts", tags: ["campaign"] });
  await api.send("PATCH", `/v1/links/${archived.id}`, { json: { archived: true } });
  const disabled = await api.createLink({ slug: "prize", title: "Claim your prize" });
  await service.storage.disabledLinks.disable(disabled.id, "Reported as phishing", OPERATOR);
  const locked = await api.createLink({ slug: "price-list", title: "Prices of 2027", password: "roastery" });
  return { archived, disabled, locked, popular: links[0] as LinkBody };
}

/** Follows a link as a visitor: the first links get more clicks than the last, and some come from a bot. */
async function followLink({ urls }: TestService, day: number, visit: number): Promise<void> {
  const slug = SLUGS[visit % (1 + (day % SLUGS.length))];
  const referer = REFERRERS[(day + visit) % REFERRERS.length] ?? "";
  const agent = visit % 7 === 6 ? "Googlebot/2.1" : "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0";
  const headers = { "user-agent": agent, ...(referer && { referer }) };
  await fetch(`${urls.short}/${slug}`, { redirect: "manual", headers });
}

async function fillDomains({ storage }: TestService, api: Api) {
  const add = async (host: string, fields: object = {}) =>
    (await api.send<DomainView>("POST", "/v1/domains", { json: { host, ...fields } })).body;
  const domain = await add("go.northwind.example", {
    root_redirect_url: `${SITE}/`,
    app_links: { assetlinks: [{ relation: ["delegate_permission/common.handle_all_urls"] }] },
  });
  const lostDomain = await add("offers-and-everything-else.of-the-roastery.northwind.example");
  for (const { id, dns } of [domain, lostDomain])
    await storage.domains.recordCheck(id, [dns.value], OPERATOR);
  await storage.domains.recordCheck(lostDomain.id, [], OPERATOR);
  await api.createLink({ slug: "beans", domain: domain.host });
  return { domain, lostDomain, newDomain: await add("new.northwind.example", { case_sensitive: false }) };
}

async function addTrustRules(service: TestService, own: TestOrganization) {
  const used = await addRule(service, own, {
    name: "Newsletter links",
    issuer: "https://token.actions.githubusercontent.com",
    subject: "repo:northwind-coffee@65/newsletter@74:ref:refs/heads/main",
  });
  await service.storage.trustRules.markUsed([used], Date.now());
  await addRule(service, own, {
    name: "Shop",
    issuer: "https://oidc.eks.eu-north-1.amazonaws.com/id/EXAMPLED539D4633E53DE1B71EXAMPLE",
    subject: "system:serviceaccount:shop:*",
    claims: {},
    scopes: ["links:read", "webhooks:read"],
  });
}

async function fillAppWebhooks(api: Api): Promise<void> {
  for (const host of ["hooks", "hooks", "events-of-the-newsletter-and-everything-else.eu-north-1"])
    await createWebhook(api, `https://${host}.flowline.invalid/${randomUUID()}`, ["link.deleted"]);
}

async function fillWebhooks(api: Api, receiver: Receiver) {
  receiver.respond("/gone", (answer) => answer.writeHead(410).end());
  const webhook = await createWebhook(api, receiver.url("/events"), ["link.created", "link.updated"]);
  receiver.respond("/failing", (answer) => {
    answer.writeHead(500, { "content-type": "text/html", "x-request-id": "9f8e7d6c".repeat(16) });
    const stack = "at handle (/srv/app/node_modules/router/index.js) ".repeat(100);
    answer.end(`<h1>Internal Server Error</h1>\n${stack}`);
  });
  const failing = await createWebhook(api, receiver.url("/failing"), ["link.clicked"]);
  const unverified = await createWebhook(api, "https://hooks.northwind.invalid/linkgate", ["link.clicked"]);
  const gone = await createWebhook(api, receiver.url("/gone"), ["link.deleted"]);
  await api.send("POST", `/v1/webhooks/${gone.id}/test`);
  await api.createLink({ slug: "autumn", title: "Autumn roasts" });
  await fetch((await api.createLink({ slug: "now" })).short_url, { redirect: "manual" });
  await waitForDelivery(api, webhook, ({ status }) => status === "succeeded");
  const lost = await waitForDelivery(api, gone, ({ status }) => status === "failed");
  await waitForDelivery(api, failing, ({ attempts }) => attempts.length > 0);
  await until(async () => (await deliveriesOf(api, unverified)).find(({ attempts }) => attempts.length > 0));
  return { webhook, failing, unverified, gone, lost };
}
