import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { PublicUrls } from "../../../resources/access/resource-metadata.ts";
import { API_SCOPES, allowedByRole, SCOPE_DESCRIPTIONS } from "../../../resources/access/scopes.ts";
import { isPaid } from "../../../resources/plans.ts";
import { LOOPBACK } from "../../clients/redirect-uris.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { membershipOf, signedInUserOf } from "../access.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { acceptanceOf, type Conditions } from "./acceptance.ts";
import { type Guide, guidesOf } from "./guides.ts";
import { connectPage, planRequiredPage } from "./page.ts";

/** Adds the page that explains how to connect each AI client to the organization. */
export const connectRoutes: RouteModule = (router, { storage, settings, urls, allow }) => {
  const { CIMD, DYNAMIC_REGISTRATION } = settings;
  router.get(`${ORGANIZATION}/connect`, allow(), async (ctx) => {
    const membership = membershipOf(ctx);
    const [client, policy, requiresDpop] = await Promise.all([
      storage.clients.findByOrganization(membership.id),
      storage.appPolicies.find(membership.id),
      storage.dpopRequirement.isRequired(membership.id),
    ]);
    const conditions: Conditions = {
      CIMD,
      DYNAMIC_REGISTRATION,
      plan: membership.plan,
      allowed: policy?.allowedClients ?? "none",
      requiresDpop,
      isLocal: isLocal(urls),
    };
    const clientId = client?.secrets.length ? client.clientId : undefined;
    const guides = guidesOf({ membership, conditions, mcpUrl: urls.mcp, clientId });
    if (prefersHtml(ctx)) return show(ctx, conditions, guides);
    const { knownDocument, otherDocument, registration } = acceptanceOf(conditions);
    ctx.body = {
      mcp_url: urls.mcp,
      accepts: {
        known_documents: !knownDocument,
        other_documents: !otherDocument,
        registered_clients: !registration,
      },
      requires_dpop: requiresDpop,
      scopes: scopesOf(membership),
      hosts: guides.map(showGuide),
    };
  });
};

function isLocal({ base, mcp }: PublicUrls): boolean {
  return [base, mcp].some((url) => LOOPBACK.has(new URL(url).hostname));
}

/** Returns the scopes that apps may have on behalf of the member. */
function scopesOf({ role }: Membership) {
  return API_SCOPES.filter((scope) => allowedByRole([scope], role).length > 0).map((scope) => ({
    name: scope,
    description: SCOPE_DESCRIPTIONS[scope],
  }));
}

function show(ctx: Context, conditions: Conditions, guides: Guide[]) {
  const membership = membershipOf(ctx);
  const { id, name, plan } = membership;
  const page = { title: "Connect", heading: "Connect an AI client", section: "connect" as const };
  if (!isPaid(plan)) return showPage(ctx, page, planRequiredPage(id));
  const intro = `Let an AI client work with the links of ${name}. You sign in and allow what it asks for.`;
  const body = connectPage({
    membership,
    username: signedInUserOf(ctx).username,
    guides,
    selected: String(ctx.query.host ?? ""),
    scopes: scopesOf(membership),
    accepted: acceptanceOf(conditions),
    requiresDpop: conditions.requiresDpop,
  });
  showPage(ctx, { ...page, intro }, body);
}

function showGuide({ id, name, obstacle, steps, ownClient }: Guide) {
  return {
    id,
    name,
    available: obstacle === null,
    reason: obstacle?.code ?? null,
    detail: obstacle?.detail ?? null,
    steps,
    own_client: ownClient && { redirect_uri: ownClient.redirectUri, steps: ownClient.steps },
  };
}
