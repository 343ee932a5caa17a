import type { Context } from "koa";
import { z } from "zod";
import type { AllowedClients } from "../../../adapters/oauth/client-policy.ts";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import type { Settings } from "../../config.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { html } from "../../ui/html.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { describeApp } from "../app-identity.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";
import { allowedClientsPanel } from "./allowed-clients-panel.ts";
import { appsTable, type ShownApp } from "./apps-page.ts";
import { enterpriseAuthorizationPanel } from "./enterprise-authorization.ts";

const PATH = `${ORGANIZATION}/apps`;
const CHOICE_LIST = new Intl.ListFormat("en-GB", { type: "disjunction" }); // without a comma before “or”

/** Adds the routes that list authorized apps, revoke their access, and choose which ones members may connect. */
export const appRoutes: RouteModule = (router, { storage, settings, clientPolicy, allow }) => {
  const choices = choicesOn(settings);
  const canRegister = settings.DYNAMIC_REGISTRATION !== "off";
  const setting = z.strictObject({
    allowed_clients: z.enum(choices, { error: `must be ${CHOICE_LIST.format(choices)}` }),
  });
  const { grants, allowedClients, enterpriseAuthorization } = storage;

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const [authorized, setting = "none", isEnterpriseManaged] = await Promise.all([
      grants.listByOrganization(membership.id),
      allowedClients.find(membership.id),
      enterpriseAuthorization.isEnabled(membership.id),
    ]);
    const apps = authorized.map((app) => ({
      ...app,
      ...describeApp(app),
      isAllowed: clientPolicy(app.clientId, setting),
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = {
        allowed_clients: setting,
        enterprise_authorization: isEnterpriseManaged,
        data: apps.map(showApp),
      };
      return;
    }
    const intro = "Apps that members have authorized. Revoking access takes effect immediately.";
    const { csrf } = signedInUserOf(ctx);
    const policy = allowedClientsPanel({ membership, setting, choices, canRegister, csrf });
    const enterprise =
      settings.IDP_NAME && membership.role === "owner"
        ? enterpriseAuthorizationPanel({
            organizationId: membership.id,
            isEnabled: isEnterpriseManaged,
            idpName: settings.IDP_NAME,
            csrf,
          })
        : html``;
    const body = html`${policy}${enterprise}${appsTable({ membership, user: signedInUserOf(ctx), apps })}`;
    showPage(ctx, { title: "Authorized apps", intro, section: "apps", error }, body);
  };
  router.get(PATH, allow(), (ctx) => show(ctx));

  const change = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const { allowed_clients } = validate(setting, await formFieldsOf(ctx));
    const { actor } = signedInUserOf(ctx);
    if (!(await allowedClients.set(id, allowed_clients, actor))) throw notFound("organization");
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "allowed-clients-changed" });
  };
  router.put(PATH, allow(...MANAGERS), change);
  router.post(PATH, allow(...MANAGERS), redisplayForm(show), change);

  const revoke = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const user = signedInUserOf(ctx);
    const grantId = ctx.params.grant_id as string;
    const app = (await grants.listByOrganization(id)).find((one) => one.id === grantId);
    if (!app) throw notFound("app");
    if (role === "member" && app.userId !== user.id) {
      const detail = "Only owners, admins and the user who authorized the app can revoke its access.";
      throw new Problem(403, "role_required", detail);
    }
    if (!(await grants.revoke(id, grantId, user.actor))) throw notFound("app");
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "app-revoked" });
  };
  router.delete(`${PATH}/:grant_id`, allow(), revoke);
  router.post(`${PATH}/:grant_id/delete`, allow(), revoke);
};

function showApp(app: ShownApp) {
  const { id, clientId, userId, username, scopes, grantedAt, expiresAt, lastUsedAt } = app;
  return {
    id,
    app: app.name,
    client_id: clientId,
    published_by: app.publisher,
    is_allowed: app.isAllowed,
    user: { id: userId, username },
    scopes,
    granted_at: new Date(grantedAt).toISOString(),
    expires_at: new Date(expiresAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}

/** Returns what an organization may choose on a server: never more than the server itself accepts. */
function choicesOn({ CIMD, DYNAMIC_REGISTRATION }: Settings): AllowedClients[] {
  const isOpen = CIMD === "any" || DYNAMIC_REGISTRATION !== "off";
  return isOpen ? ["known", "any", "none"] : ["known", "none"];
}
