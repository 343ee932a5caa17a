import type { MemberApps } from "../../../adapters/oauth/client-policy.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { AppIdentity } from "../../clients/app-identity.ts";
import type { ShownApproval } from "../../clients/approval-view.ts";
import { identityOf } from "../../clients/client-identity.ts";
import { breakable, csrfField, field, formButton, linkButton, time } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, table } from "../../ui/table.ts";

type Approvals = {
  membership: Membership;
  memberApps: MemberApps;
  approved: ShownApproval[];
  csrf: string | undefined;
};

/** Renders the approved apps while approval is required; managers can approve others and withdraw approvals. */
export function approvedAppsSection({ membership, memberApps, approved, csrf }: Approvals): Html {
  if (memberApps !== "approved") return html``;
  const path = sectionPath(membership.id, "apps");
  const columns: Column<ShownApproval>[] = [
    { head: "App", cell: nameAndClient },
    { head: "Approved by", cell: ({ approvedBy }) => html`<bdi>${breakable(approvedBy)}</bdi>` },
    { head: "Approved", cell: ({ approvedAt }) => time(approvedAt) },
  ];
  const actions: Column<ShownApproval> = {
    head: "Actions",
    cell: ({ id, name }) =>
      formButton({
        action: `${path}/approved/${id}/delete`,
        csrf,
        text: "Withdraw approval",
        about: `of ${name}`,
        look: "danger",
      }),
  };
  const list = isManager(membership) ? [...columns, actions] : columns;
  return html`<section class="group"><div class="title"><div><h2>Approved apps</h2>
<p class="intro">Members may authorize these apps.</p></div></div>
${approved.length > 0 ? table("Approved apps", list, approved) : html`<p class="soft">No apps are approved yet.</p>`}
${isManager(membership) ? approvalForm(path) : html``}</section>`;
}

/** Renders the form that opens the page of an app to approve. */
export function approvalForm(path: string, clientId = ""): Html {
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

type Approval = {
  membership: Membership;
  app: AppIdentity & { clientId: string };
  csrf: string | undefined;
};

/** Renders the page that asks a manager to approve an app. */
export function approvalPage({ membership, app, csrf }: Approval): Html {
  const path = sectionPath(membership.id, "apps");
  return html`<div class="panel">
<dl class="facts">
<dt>App</dt><dd><bdi>${app.name}</bdi></dd>
<dt>Client ID</dt><dd><code>${breakable(app.clientId)}</code></dd>
<dt>Identity</dt><dd>${identityText(app.clientId)}</dd>
</dl>
<p>Members of <strong><bdi>${membership.name}</bdi></strong> will be able to authorize this app for the access that their role allows.</p>
<form method="post" action="${path}/approved" class="actions">${csrfField(csrf)}
<input type="hidden" name="client_id" value="${app.clientId}">
<button type="submit">Approve app</button>
${linkButton(path, "Cancel", "quiet")}
</form></div>`;
}

function identityText(clientId: string): string {
  const identity = identityOf(clientId);
  if (!identity) return "The client of an organization on this server, which chose its name.";
  const { publisher, isKnown } = identity;
  if (!publisher) return "Not verified: this app chose its name itself.";
  return isKnown
    ? `Published by ${publisher}, and on linkgate’s list of known apps.`
    : `Not verified: published by ${publisher}.`;
}
