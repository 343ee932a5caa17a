import type { Context } from "koa";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { MANAGERS } from "../../../resources/access/scopes.ts";
import { invalidField } from "../../../resources/http/validate.ts";
import { findApp, identityOf } from "../../clients/app-identity.ts";
import type { ShownApproval } from "../../clients/client-view.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { approveApp, listApprovedApps, NOT_AN_APP, withdrawApproval } from "../../operations/apps.ts";
import { breakable, CSRF_FIELD, field, formButton, linkButton, time } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { membershipOf, pathTo } from "../access.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

export const approvedAppRoutes: RouteModule = (router, options) => {
  const { storage, registeredClientIds, allow } = options;
  const to = (ctx: Context) => pathTo(ctx, "settings");

  router.get(`${ORGANIZATION}/apps/approve`, allow(...MANAGERS), async (ctx) => {
    const clientId = String(ctx.query.client_id ?? "");
    const app = await findApp(clientId, storage.clients, registeredClientIds);
    if (prefersHtml(ctx) && !app) return showUnknownApp(ctx, clientId);
    if (!app) throw invalidField("client_id", NOT_AN_APP);
    if (!prefersHtml(ctx))
      return sendJson(ctx, { client_id: clientId, app: app.name, published_by: app.publisher });
    const body = approvalPage(membershipOf(ctx), clientId, app.name);
    showPage(ctx, { title: "Approve app", section: "settings", body });
  });
  addReading(router, options, listApprovedApps, (ctx) => ctx.redirect(to(ctx)));
  addOperation(router, options, approveApp, { to });
  addOperation(router, options, withdrawApproval, { to });
};

function showUnknownApp(ctx: Context, clientId: string): void {
  ctx.status = 422;
  const body = approvalForm(pathTo(ctx, "apps"), clientId);
  const error = "No app has this client ID. Check it and try again.";
  showPage(ctx, { title: "Approve app", section: "settings", error, body });
}

/** Renders the apps that members may authorize; managers can approve others and withdraw approvals. */
export function approvedAppsPanel(membership: Membership, approved: ShownApproval[]): Html {
  const path = sectionPath(membership.id, "apps");
  const columns: Columns<ShownApproval> = {
    App: nameAndClient,
    "Approved by": ({ approvedBy }) => html`<bdi>${breakable(approvedBy)}</bdi>`,
    Approved: ({ approvedAt }) => time(approvedAt),
  };
  const withdrawButton = ({ id, name }: ShownApproval) =>
    formButton({
      action: `${path}/approved/${id}/delete`,
      text: "Withdraw approval",
      about: `of ${name}`,
      look: "danger",
    });
  const actions = isManager(membership) ? withdrawButton : undefined;
  return html`<section class="group"><div class="title"><div><h2>Approved apps</h2>
<p class="intro">Members may authorize these apps.</p></div></div>
${approved.length > 0 ? table("Approved apps", columns, approved, actions) : html`<p class="soft">No apps are approved yet.</p>`}
${isManager(membership) && approvalForm(path)}</section>`;
}

function approvalForm(path: string, clientId = ""): Html {
  return html`<form method="get" action="${path}/approve" class="row">
${field({
  name: "client_id",
  label: "Client ID to approve",
  value: clientId,
  isWide: true,
  attributes: html`required maxlength="255" autocomplete="off" spellcheck="false"`,
})}
<button type="submit" class="quiet">Review app</button>
</form>`;
}

function nameAndClient({ name, clientId }: ShownApproval): Html {
  return html`<strong><bdi>${name}</bdi></strong><br><code>${breakable(clientId)}</code>`;
}

function approvalPage({ id, name }: Membership, clientId: string, appName: string): Html {
  const path = sectionPath(id, "apps");
  return html`<div class="panel narrow">
<dl class="facts">
<dt>App</dt><dd><bdi>${appName}</bdi></dd>
<dt>Client ID</dt><dd><code>${breakable(clientId)}</code></dd>
<dt>Identity</dt><dd>${identityText(clientId)}</dd>
</dl>
<p>Members of <strong><bdi>${name}</bdi></strong> will be able to authorize this app for the access that their role allows.</p>
<form method="post" action="${path}/approved" class="actions">${CSRF_FIELD}
<input type="hidden" name="client_id" value="${clientId}">
<button type="submit">Approve app</button>
${linkButton(sectionPath(id, "settings"), "Cancel", "quiet")}
</form></div>`;
}

function identityText(clientId: string): string {
  const identity = identityOf(clientId);
  if (!identity) return "The client of an organization on this server, which chose its name.";
  const { publisher, isKnown } = identity;
  if (!publisher) return "Unverified app: anyone can use this name.";
  return isKnown
    ? `Published by ${publisher}, and on linkgate’s list of known apps.`
    : `Not verified: published by ${publisher}.`;
}
