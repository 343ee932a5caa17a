import type { Context } from "koa";
import type { AllowedClients, MemberApps } from "../../../adapters/oauth/app-policy.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { invalidField } from "../../../resources/http/validate.ts";
import { findApp, identityOf } from "../../clients/app-identity.ts";
import { KNOWN_CLIENT_NAMES } from "../../clients/known-clients.ts";
import { prefersHtml } from "../../http/request-body.ts";
import {
  allowedClientsOn,
  approveApp,
  listApprovedApps,
  NOT_AN_APP,
  setAppPolicy,
  withdrawApproval,
} from "../../operations/apps.ts";
import type { Result } from "../../operations/operation.ts";
import type { getSettings } from "../../operations/organizations.ts";
import type { Settings } from "../../settings/config.ts";
import * as ui from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { mayRun, membershipOf, pathTo, rolesOf } from "../access.ts";
import { addOperation, addReading } from "../operation-routes.ts";
import { sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

type Policy = Pick<Result<typeof getSettings>, "allowed_clients" | "member_apps" | "approved_apps">;
type Approval = Policy["approved_apps"][number];

export const approvedAppRoutes: RouteModule = (router, options) => {
  const { storage, registeredClientIds, allow } = options;
  const to = (ctx: Context) => pathTo(ctx, "settings");

  router.get(`${ORGANIZATION}/apps/approve`, allow(...rolesOf(approveApp)), async (ctx) => {
    const clientId = String(ctx.query.client_id ?? "");
    const app = await findApp(clientId, storage.clients, registeredClientIds);
    const page = { title: "Approve app", section: "settings" } as const;
    if (prefersHtml(ctx) && !app) {
      ctx.status = 422;
      const error = "No app has this client ID. Check it and try again.";
      return showPage(ctx, { ...page, error, body: approvalForm(pathTo(ctx, "apps"), clientId) });
    }
    if (!app) throw invalidField("client_id", NOT_AN_APP);
    if (!prefersHtml(ctx))
      return sendJson(ctx, { client_id: clientId, app: app.name, published_by: app.publisher });
    showPage(ctx, { ...page, body: approvalPage(membershipOf(ctx), clientId, app.name) });
  });
  addReading(router, options, listApprovedApps, (ctx) => ctx.redirect(to(ctx)));
  addOperation(router, options, approveApp, { to });
  addOperation(router, options, withdrawApproval, { to });
};

const KINDS: Record<AllowedClients, string> = {
  known: "Known AI clients",
  any: "Any app",
  none: "Only apps of organizations on this server",
};

const MEMBER_APPS_LABELS: Record<MemberApps, string> = {
  any: "Any app that the organization accepts",
  approved: "Only approved apps",
  none: "No apps",
};

const FOR_MEMBERS: Record<MemberApps, string> = {
  any: "Members may authorize any app that the organization accepts.",
  approved:
    "Members may authorize only approved apps. To use another app, ask an owner or admin to approve it.",
  none: "Members may not authorize apps. Ask an owner or admin if you need one.",
};

const TITLE = "Apps";
const KNOWN = `Known AI clients are ${KNOWN_CLIENT_NAMES}.`;
const ALWAYS = "Apps of organizations on this server are always accepted.";
const REGISTERED = "Cursor and apps on a member’s own computer that register themselves count as known.";

/** Renders which apps the organization accepts and which of them members may authorize; managers can change both. */
export function appPolicyPanel(
  membership: Membership,
  { allowed_clients, member_apps }: Policy,
  settings: Settings,
): Html {
  const choices = allowedClientsOn(settings);
  const canRegister = settings.DYNAMIC_REGISTRATION !== "off";
  // The server may have accepted more when the setting was chosen.
  const current = choices.find((choice) => choice === allowed_clients) ?? "known";
  if (!mayRun(membership, setAppPolicy)) {
    const kind = KINDS[current].charAt(0).toLowerCase() + KINDS[current].slice(1);
    return ui.settingPanel(
      { title: TITLE, text: FOR_MEMBERS[member_apps as MemberApps] },
      html`<p>Accepted apps: ${kind}${current === "known" ? `, which are ${KNOWN_CLIENT_NAMES}. ${canRegister ? REGISTERED : ""}` : "."}</p>`,
    );
  }
  return ui.settingPanel(
    {
      id: "apps",
      title: TITLE,
      text: `${ALWAYS} Owners and admins may authorize any accepted app, and you can limit members further.`,
    },
    html`<form method="post" action="${sectionPath(membership.id, "apps")}" class="stack">${ui.CSRF_FIELD}
${ui.select({
  name: "allowed_clients",
  label: "Accepted apps",
  value: current,
  options: choices.map((choice) => [choice, KINDS[choice]] as const),
  hint: canRegister ? `${KNOWN} ${REGISTERED}` : KNOWN,
})}
${ui.select({
  name: "member_apps",
  label: "Apps members may authorize",
  value: member_apps,
  options: Object.entries(MEMBER_APPS_LABELS),
  hint: "Apps that are no longer allowed lose access immediately.",
})}
<button type="submit" class="quiet">Save settings</button>
</form>`,
  );
}

/** Renders the apps that members may authorize; managers can approve others and withdraw approvals. */
export function approvedAppsPanel(membership: Membership, approved: Approval[]): Html {
  const path = sectionPath(membership.id, "apps");
  const columns: Columns<Approval> = {
    App: ({ app, client_id }) =>
      html`<strong><bdi>${app}</bdi></strong><br><code>${ui.breakable(client_id)}</code>`,
    "Approved by": ({ approved_by }) => html`<bdi>${ui.breakable(approved_by)}</bdi>`,
    Approved: ({ approved_at }) => ui.time(Date.parse(approved_at)),
  };
  const withdrawButton = ({ id, app }: Approval) =>
    ui.formButton({
      action: `${path}/approved/${id}/delete`,
      text: "Withdraw approval",
      about: `of ${app}`,
      look: "danger",
    });
  const actions = mayRun(membership, withdrawApproval) ? withdrawButton : undefined;
  return html`<section class="group"><div class="title"><div><h2>Approved apps</h2>
<p class="intro">Members may authorize these apps.</p></div></div>
${approved.length > 0 ? table("Approved apps", columns, approved, actions) : html`<p class="soft">No apps are approved yet.</p>`}
${mayRun(membership, approveApp) && approvalForm(path)}</section>`;
}

function approvalForm(path: string, clientId = ""): Html {
  return html`<form method="get" action="${path}/approve" class="row">
${ui.field({
  name: "client_id",
  label: "Client ID to approve",
  value: clientId,
  isWide: true,
  attributes: html`required maxlength="255" autocomplete="off" spellcheck="false"`,
})}
<button type="submit" class="quiet">Review app</button>
</form>`;
}

function approvalPage({ id, name }: Membership, clientId: string, appName: string): Html {
  const path = sectionPath(id, "apps");
  return html`<div class="panel narrow">
<dl class="facts">
<dt>App</dt><dd><bdi>${appName}</bdi></dd>
<dt>Client ID</dt><dd><code>${ui.breakable(clientId)}</code></dd>
<dt>Identity</dt><dd>${identityText(clientId)}</dd>
</dl>
<p>Members of <strong><bdi>${name}</bdi></strong> will be able to authorize this app for the access that their role allows.</p>
<form method="post" action="${path}/approved" class="actions">${ui.CSRF_FIELD}
<input type="hidden" name="client_id" value="${clientId}">
<button type="submit">Approve app</button>
${ui.linkButton(sectionPath(id, "settings"), "Cancel", "quiet")}
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
