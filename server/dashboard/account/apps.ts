import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { allowedByRole, withoutImplied } from "../../../resources/access/scopes.ts";
import { notFound } from "../../../resources/http/problem.ts";
import { type AppIdentity, describeApp } from "../../clients/app-identity.ts";
import { prefersHtml } from "../../http/request-body.ts";
import type { SignedInUser } from "../../http/state.ts";
import { linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";
import { signedInUserOf } from "../access.ts";
import { ACCESS_COLUMNS, appName, numberRepeats } from "../app-name.ts";
import { appRevocationForm } from "../app-revocation-form.ts";
import { asksToDeleteWebhooks } from "../created-webhooks.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";

/** An app that the user authorized, as it is shown. */
type ShownAccountApp = AuthorizedApp & AppIdentity & { organizationName: string };

const PATH = "/dashboard/account/apps";

type Options = {
  storage: Pick<Storage, "grants" | "organizations" | "secondFactorRequirement" | "webhooks">;
};

/** Adds the routes that list and revoke the apps that the user has authorized, for all organizations. */
export function accountAppRoutes(router: Router, { storage }: Options): void {
  const { grants, organizations } = storage;
  router.get(PATH, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const [authorized, memberships] = await Promise.all([
      grants.listByUser(id),
      organizations.listByUser(id),
    ]);
    const names = new Map(memberships.map((one) => [one.id, one.name]));
    const apps = authorized.map((app) => ({
      ...app,
      ...describeApp(app),
      organizationName: names.get(app.organizationId) ?? app.organizationId,
      scopes: withoutImplied(allowedByRole(app.scopes, app.role)),
    }));
    if (!prefersHtml(ctx)) {
      ctx.body = { data: apps.map(showApp) };
      return;
    }
    ctx.state.memberships = memberships;
    const intro =
      "Apps that act for you, in all of your organizations. Revoking access takes effect immediately.";
    showPage(ctx, { title: "Apps you authorized", intro }, accountAppsTable(apps));
  });

  addRevocationRoutes(router, storage);
}

function addRevocationRoutes(router: Router, storage: Options["storage"]): void {
  const { grants, organizations } = storage;

  const findApp = async (ctx: Context) => {
    const user = signedInUserOf(ctx);
    const apps = await grants.listByUser(user.id);
    const app = apps.find((one) => one.id === ctx.params.grant_id);
    if (!app) throw notFound("app");
    const memberships = await organizations.listByUser(user.id);
    const membership = memberships.find(({ id }) => id === app.organizationId);
    if (!membership) throw notFound("app");
    const managesWebhooks = await mayManageWebhooks(storage, user, membership);
    return { app, repeat: numberRepeats(apps).get(app.id), memberships, membership, managesWebhooks };
  };

  const showForm: Show = async (ctx, error) => {
    const { app, repeat, memberships, membership, managesWebhooks } = await findApp(ctx);
    ctx.state.memberships = memberships;
    const body = appRevocationForm({
      app: { ...app, ...describeApp(app), scopes: withoutImplied(allowedByRole(app.scopes, app.role)) },
      organizationName: membership.name,
      repeat,
      isOwn: true,
      webhookHosts: managesWebhooks ? await storage.webhooks.listCreatedHosts(membership.id, app) : undefined,
      path: PATH,
      csrf: signedInUserOf(ctx).csrf,
    });
    showPage(ctx, { title: "Revoke access?", error }, body);
  };
  router.get(`${PATH}/:grant_id/delete`, (ctx) => showForm(ctx));

  const revoke = async (ctx: Context) => {
    const { actor } = signedInUserOf(ctx);
    const { app, managesWebhooks } = await findApp(ctx);
    const deletesWebhooks = (await asksToDeleteWebhooks(ctx)) && managesWebhooks;
    if (!(await grants.revoke(app.organizationId, app.id, actor, { deletesWebhooks }))) throw notFound("app");
    respondToChange(ctx, { to: PATH, done: deletesWebhooks ? "app-revoked-webhooks" : "app-revoked" });
  };
  router.delete(`${PATH}/:grant_id`, revoke);
  router.post(`${PATH}/:grant_id/delete`, redisplayForm(showForm), revoke);
}

/** Returns whether the organization would let this user manage its webhooks now. */
async function mayManageWebhooks(
  { secondFactorRequirement }: Options["storage"],
  { secondFactor }: SignedInUser,
  { id, role, suspension }: Membership,
): Promise<boolean> {
  if (role === "member" || suspension) return false;
  return secondFactor === "proved" || !(await secondFactorRequirement.isRequired(id));
}

function showApp(app: ShownAccountApp) {
  const { id, name, publisher, clientId, organizationId, organizationName, scopes, lastUsedAt } = app;
  return {
    id,
    app: name,
    client_id: clientId,
    published_by: publisher,
    organization: { id: organizationId, name: organizationName },
    scopes,
    granted_at: new Date(app.grantedAt).toISOString(),
    expires_at: new Date(app.expiresAt).toISOString(),
    last_used_at: lastUsedAt === null ? null : new Date(lastUsedAt).toISOString(),
  };
}

/** Renders the apps that the user has authorized. */
function accountAppsTable(apps: ShownAccountApp[]): Html {
  if (apps.length === 0) {
    return emptyState("No authorized apps", "Apps appear here once you authorize them.");
  }
  const repeats = numberRepeats(apps);
  return table(
    "Apps you authorized",
    [
      { head: "App", cell: (app) => appName(app, repeats.get(app.id)) },
      { head: "Organization", cell: ({ organizationName }) => html`<bdi>${organizationName}</bdi>` },
      ...ACCESS_COLUMNS,
      {
        head: "Actions",
        cell: ({ id, name, organizationName }) =>
          linkButton(
            `/dashboard/account/apps/${id}/delete`,
            "Revoke access",
            "danger",
            [`of ${name} to ${organizationName}`, repeats.get(id)].filter(Boolean).join(", "),
          ),
      },
    ],
    apps,
  );
}
