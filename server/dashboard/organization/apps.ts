import type { Context } from "koa";
import { z } from "zod";
import type { AllowedClients } from "../../../adapters/oauth/client-policy.ts";
import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { type AppIdentity, describeApp } from "../../clients/app-identity.ts";
import { describeApproval, showApproval } from "../../clients/approval-view.ts";
import { prefersHtml } from "../../http/request-body.ts";
import type { Settings } from "../../settings/config.ts";
import { badge, breakable, linkButton } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";
import { MANAGERS, membershipOf, signedInUserOf } from "../access.ts";
import { ACCESS_COLUMNS, appName, numberRepeats } from "../app-name.ts";
import { appRevocationForm } from "../app-revocation-form.ts";
import { asksToDeleteWebhooks } from "../created-webhooks.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { type DashboardOptions, ORGANIZATION, type RouteModule } from "../route.ts";
import { appPolicyPanel } from "./app-policy-panel.ts";
import { approvedAppsSection } from "./approved-apps-page.ts";
import { enterpriseAuthorizationPanel } from "./enterprise-authorization.ts";

/** An authorized app as it is shown. */
type ShownApp = AuthorizedApp &
  AppIdentity & {
    /** Whether the organization lets its members connect this app. If not, its tokens are rejected. */
    isAllowed: boolean;
  };

type AppsTable = {
  membership: Membership;
  user: { id: string };
  apps: ShownApp[];
};

const CHOICE_LIST = new Intl.ListFormat("en-GB", { type: "disjunction" }); // without a comma before “or”
const MEMBER_APPS = ["any", "approved", "none"] as const;

const PATH = `${ORGANIZATION}/apps`;

/** Adds the routes that list authorized apps, revoke their access, and choose which ones members may connect. */
export const appRoutes: RouteModule = (router, options) => {
  const { storage, settings, clientPolicy, allow } = options;
  const choices = choicesOn(settings);
  const canRegister = settings.DYNAMIC_REGISTRATION !== "off";
  const { grants, appPolicies, approvedApps, enterpriseAuthorization } = storage;

  const show: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const [authorized, setting, listed, isEnterpriseManaged] = await Promise.all([
      grants.listByOrganization(membership.id),
      appPolicies.find(membership.id),
      approvedApps.list(membership.id),
      enterpriseAuthorization.isEnabled(membership.id),
    ]);
    if (!setting) throw notFound("organization");
    const approved = listed.map(describeApproval);
    const approvedIds = new Set(approved.map(({ clientId }) => clientId));
    const apps = authorized.map((app) => ({
      ...app,
      ...describeApp(app),
      isAllowed: clientPolicy(
        app.clientId,
        { ...setting, isApproved: approvedIds.has(app.clientId) },
        app.role,
      ),
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = {
        allowed_clients: setting.allowedClients,
        member_apps: setting.memberApps,
        approved_apps: approved.map(showApproval),
        enterprise_authorization: isEnterpriseManaged,
        data: apps.map(showApp),
      };
      return;
    }
    const intro = "Apps that members have authorized. Revoking access takes effect immediately.";
    const { csrf } = signedInUserOf(ctx);
    const policy = appPolicyPanel({ membership, setting, choices, canRegister, csrf });
    const enterprise =
      settings.IDP_NAME && membership.role === "owner"
        ? enterpriseAuthorizationPanel({
            organizationId: membership.id,
            isEnabled: isEnterpriseManaged,
            idpName: settings.IDP_NAME,
            csrf,
          })
        : html``;
    const approvals = approvedAppsSection({ membership, memberApps: setting.memberApps, approved, csrf });
    const body = html`${policy}${enterprise}${approvals}${appsTable({ membership, user: signedInUserOf(ctx), apps })}`;
    showPage(ctx, { title: "Authorized apps", intro, section: "apps", error }, body);
  };
  router.get(PATH, allow(), (ctx) => show(ctx));

  const change = changeAppPolicy(options);
  router.put(PATH, allow(...MANAGERS), change);
  router.post(PATH, allow(...MANAGERS), redisplayForm(show), change);

  addRevocationRoutes(router, options);
};

/** Adds the routes that revoke the access of an app, which its user and managers may do. */
const addRevocationRoutes: RouteModule = (router, { storage, allow }) => {
  const { grants } = storage;

  const findApps = async (ctx: Context) => {
    const { id, role } = membershipOf(ctx);
    const apps = await grants.listByOrganization(id);
    const app = apps.find((one) => one.id === ctx.params.grant_id);
    if (!app) throw notFound("app");
    if (role === "member" && app.userId !== signedInUserOf(ctx).id) {
      const detail = "Only owners, admins and the user who authorized the app can revoke its access.";
      throw new Problem(403, "role_required", detail);
    }
    return { app, apps };
  };

  const showForm: Show = async (ctx, error) => {
    const membership = membershipOf(ctx);
    const { id: userId, csrf } = signedInUserOf(ctx);
    const { app, apps } = await findApps(ctx);
    const body = appRevocationForm({
      app: { ...app, ...describeApp(app), scopes: withoutImplied(allowedByRole(app.scopes, app.role)) },
      organizationName: membership.name,
      repeat: numberRepeats(apps).get(app.id),
      isOwn: app.userId === userId,
      others: apps.filter(({ clientId }) => clientId === app.clientId).length - 1,
      webhookHosts: isManager(membership)
        ? await storage.webhooks.listCreatedHosts(membership.id, app)
        : undefined,
      path: sectionPath(membership.id, "apps"),
      csrf,
    });
    showPage(ctx, { title: "Revoke access?", section: "apps", error }, body);
  };
  router.get(`${PATH}/:grant_id/delete`, allow(), (ctx) => showForm(ctx));

  const revoke = async (ctx: Context) => {
    const membership = membershipOf(ctx);
    const { actor } = signedInUserOf(ctx);
    const { app } = await findApps(ctx);
    const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && isManager(membership);
    if (!(await grants.revoke(membership.id, app.id, actor, { deletesWebhooks }))) throw notFound("app");
    const done = deletesWebhooks ? "app-revoked-webhooks" : "app-revoked";
    respondToChange(ctx, { to: sectionPath(membership.id, "apps"), done });
  };
  router.delete(`${PATH}/:grant_id`, allow(), revoke);
  router.post(`${PATH}/:grant_id/delete`, allow(), redisplayForm(showForm), revoke);
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

/** Returns the handler that changes which apps the organization accepts, and which of them members may authorize. */
function changeAppPolicy({ storage, settings }: Pick<DashboardOptions, "storage" | "settings">) {
  const choices = choicesOn(settings);
  const changes = z
    .strictObject({
      allowed_clients: z.enum(choices, { error: `must be ${CHOICE_LIST.format(choices)}` }).optional(),
      member_apps: z.enum(MEMBER_APPS, { error: `must be ${CHOICE_LIST.format(MEMBER_APPS)}` }).optional(),
    })
    .refine(({ allowed_clients, member_apps }) => (allowed_clients ?? member_apps) !== undefined, {
      error: "must contain allowed_clients or member_apps",
    });
  return async function change(ctx: Context): Promise<void> {
    const { id } = membershipOf(ctx);
    const { allowed_clients, member_apps } = validate(changes, await formFieldsOf(ctx));
    const { actor } = signedInUserOf(ctx);
    const policy = {
      ...(allowed_clients && { allowedClients: allowed_clients }),
      ...(member_apps && { memberApps: member_apps }),
    };
    if (!(await storage.appPolicies.set(id, policy, actor))) throw notFound("organization");
    respondToChange(ctx, { to: sectionPath(id, "apps"), done: "app-policy-changed" });
  };
}

/** Returns what an organization may choose on a server: never more than the server itself accepts. */
function choicesOn({ CIMD, DYNAMIC_REGISTRATION }: Settings): AllowedClients[] {
  const isOpen = CIMD.accepted === "any" || DYNAMIC_REGISTRATION !== "off";
  return isOpen ? ["known", "any", "none"] : ["known", "none"];
}

/** Renders the apps that members authorized to act for the organization. */
function appsTable({ membership, user, apps }: AppsTable): Html {
  if (apps.length === 0) {
    return emptyState(
      "No authorized apps",
      "Apps appear here once a member authorizes them. You can revoke access at any time.",
      linkButton(sectionPath(membership.id, "connect"), "Connect an AI client"),
    );
  }
  const path = sectionPath(membership.id, "apps");
  const repeats = numberRepeats(apps);
  return table(
    "Authorized apps",
    [
      {
        head: "App",
        cell: (app) =>
          html`${appName(app, repeats.get(app.id))}${app.isAllowed ? html`` : html` ${badge("not allowed", "warn")}`}`,
      },
      { head: "User", cell: ({ username }) => html`<bdi>${breakable(username)}</bdi>` },
      ...ACCESS_COLUMNS,
      {
        head: "Actions",
        cell: (app) =>
          isManager(membership) || app.userId === user.id
            ? linkButton(
                `${path}/${app.id}/delete`,
                "Revoke access",
                "danger",
                [`of ${app.name} for ${app.username}`, repeats.get(app.id)].filter(Boolean).join(", "),
              )
            : "",
      },
    ],
    apps,
  );
}
