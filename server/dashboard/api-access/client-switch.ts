import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Disabled } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { disableClient, enableClient } from "../../operations/client.ts";
import { field, formButton, linkButton, panelForm, time } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { pathTo } from "../access.ts";
import { splitFieldErrors } from "../forms.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { CLIENT, clientOf } from "./client.ts";

export function addSwitchRoutes(router: Router, options: RouteOptions): void {
  const to = (ctx: Context) => `${pathTo(ctx, "client")}/security`;
  addOperationPage(router, options, disableClient, {
    path: `${CLIENT}/disable`,
    section: "client",
    to,
    async render(ctx, problem) {
      await clientOf(ctx, options.storage.clients);
      const { errors, ...error } = splitFieldErrors(problem);
      return { title: "Disable client", ...error, body: disableForm(pathTo(ctx, "client"), errors.reason) };
    },
  });
  addOperation(router, options, enableClient, { to });
}

export function disabledAlert(disabled: Disabled | null): Html {
  if (!disabled) return html``;
  const { at, by, reason } = disabled;
  const who = by === OPERATOR.id ? "The operator of this service" : "An owner";
  return html`<p class="alert bad">${who} disabled this client on ${time(at)}. Its requests and tokens are rejected.${reason && html` Reason: ${reason}`}</p>`;
}

export function switchPanel({ id, role }: Membership, disabled: Disabled | null): Html {
  const path = sectionPath(id, "client");
  if (role !== "owner") return html``;
  if (!disabled) {
    return html`<section class="panel danger"><h2>Disable client</h2>
<p class="soft">Stops the client and all apps that use it, until you enable it again.</p>
${linkButton(`${path}/disable`, "Disable client", "danger")}</section>`;
  }
  return html`<section class="panel"><h2>Enable client</h2>
${
  disabled.by === OPERATOR.id
    ? html`<p class="soft">Only the operator of this service can enable this client.</p>`
    : html`<p class="soft">The client and its unexpired tokens work again. If a secret leaked, rotate it first.</p>
${formButton({ action: `${path}/enable`, text: "Enable client" })}`
}</section>`;
}

function disableForm(path: string, error: string | undefined): Html {
  return panelForm(
    { action: `${path}/disable`, submit: "Disable client", cancel: `${path}/security`, danger: "panel" },
    html`<p>While the client is disabled:</p>
<ul>
<li>it gets no tokens, and its tokens are rejected by the API and MCP</li>
<li>apps that use it lose access, for members of any organization</li>
</ul>
<p>Nothing is revoked: the tokens work again if you enable the client before they expire. To revoke them, rotate the secret as compromised.</p>
${field({ name: "reason", label: "Reason (optional)", hint: "For the audit log.", error, attributes: html`maxlength="255" autocomplete="off"` })}`,
  );
}
