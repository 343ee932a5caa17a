import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Disabled } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import * as operations from "../../operations/client.ts";
import { type Operation, pathOf } from "../../operations/operation.ts";
import { field, formButton, linkButton, panelForm } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { controlOf, mayRun, membershipOf, pathTo } from "../access.ts";
import { splitFieldErrors } from "../forms.ts";
import { addOperation, addOperationPage } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { addTab, CLIENT, clientOf, tabPath } from "./tabs.ts";

export function addSecurityRoutes(router: Router, options: RouteOptions): void {
  const { clients, organizationSettings } = options.storage;
  const to = (ctx: Context) => tabPath(ctx, "client/security");
  const show = addTab(
    router,
    options,
    "client/security",
    operations.getClientSecurity,
    async (ctx, { fapi, disabled }) => {
      const membership = membershipOf(ctx);
      const settings = await organizationSettings.find(membership.id);
      const requiresDpop = settings?.requiresDpop ?? false;
      const dpopPanel = restrictionPanel(membership, operations.requireDpop, "require_dpop", {
        isOn: requiresDpop,
        title: "Token binding",
        text: html`With DPoP (RFC 9449), a token is bound to a key of the app, so a stolen token is useless without that key. Apps that support DPoP can always use it.`,
        state: requiresDpop
          ? "This organization requires DPoP. Tokens that aren’t bound to a key are rejected."
          : "This organization also accepts bearer tokens. Requiring DPoP stops all bearer tokens immediately.",
        button: requiresDpop ? "Stop requiring DPoP" : "Require DPoP",
      });
      const fapiPanel = restrictionPanel(membership, operations.setFapi, "fapi", {
        isOn: fapi,
        title: "FAPI 2.0",
        text: html`The FAPI 2.0 Security Profile restricts the client to pushed authorization requests, <code>private_key_jwt</code> with PS256, ES256 or EdDSA, and DPoP.`,
        state: fapi
          ? "The client follows FAPI 2.0. All other requests are rejected."
          : "To turn it on, add a public key, and remove all secrets and all redirect URIs without https. The client’s bearer tokens stop working immediately.",
        button: fapi ? "Turn off FAPI 2.0" : "Turn on FAPI 2.0",
      });
      return html`${dpopPanel}${fapiPanel}${switchPanel(membership, disabled)}`;
    },
  );
  addOperation(router, options, operations.requireDpop, { show, to });
  addOperation(router, options, operations.setFapi, { show, to });
  addOperationPage(router, options, operations.disableClient, {
    path: `${CLIENT}/disable`,
    section: "client",
    to,
    async render(ctx, problem) {
      await clientOf(ctx, clients);
      const { errors, ...error } = splitFieldErrors(problem);
      return { title: "Disable client", ...error, body: disableForm(pathTo(ctx, "client"), errors.reason) };
    },
  });
  addOperation(router, options, operations.enableClient, { to });
}

type Restriction = { isOn: boolean; title: string; text: Html; state: string; button: string };

function restrictionPanel(
  membership: Membership,
  operation: Operation,
  input: string,
  { isOn, title, text, state, button }: Restriction,
): Html {
  const control = formButton({
    action: pathOf(operation).replace("{id}", membership.id),
    text: button,
    look: isOn ? "quiet" : "danger",
    fields: { [input]: String(!isOn) },
  });
  return html`<section class="panel"><h2>${title}</h2>
<p class="soft">${text}</p>
<p>${state}</p>
${controlOf(membership, operation, control)}</section>`;
}

function switchPanel(membership: Membership, disabled: Disabled | null): Html {
  const path = sectionPath(membership.id, "client");
  if (!mayRun(membership, disabled ? operations.enableClient : operations.disableClient)) return html``;
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
