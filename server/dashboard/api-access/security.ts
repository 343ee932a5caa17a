import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { getClientSecurity, requireDpop, setFapi } from "../../operations/client.ts";
import { formButton } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { membershipOf } from "../access.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteOptions } from "../route.ts";
import { switchPanel } from "./client-switch.ts";
import { addTab, tabPath } from "./tabs.ts";

export function addSecurityRoutes(router: Router, options: RouteOptions): void {
  const { organizationSettings } = options.storage;
  const to = (ctx: Context) => tabPath(ctx, "client/security");
  const show = addTab(router, options, "client/security", getClientSecurity, async (ctx, client) => {
    const membership = membershipOf(ctx);
    const settings = await organizationSettings.find(membership.id);
    return html`${dpopPanel(membership, settings?.requiresDpop ?? false)}${fapiPanel(membership, client)}${switchPanel(membership, client.disabled)}`;
  });
  addOperation(router, options, requireDpop, { show, to });
  addOperation(router, options, setFapi, { show, to });
}

function dpopPanel(membership: Membership, isRequired: boolean): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "client")}/require-dpop`,
    text: isRequired ? "Stop requiring DPoP" : "Require DPoP",
    look: isRequired ? "quiet" : "danger",
    fields: { require_dpop: String(!isRequired) },
  });
  return html`<section class="panel"><h2>Token binding</h2>
<p class="soft">With DPoP (RFC 9449), a token is bound to a key of the app, so a stolen token is useless without that key. Apps that support DPoP can always use it.</p>
<p>${
    isRequired
      ? "This organization requires DPoP. Tokens that aren’t bound to a key are rejected."
      : "This organization also accepts bearer tokens. Requiring DPoP stops all bearer tokens immediately."
  }</p>
${membership.role === "owner" ? button : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}

function fapiPanel(membership: Membership, { fapi }: ClientView): Html {
  const button = formButton({
    action: `${sectionPath(membership.id, "client")}/fapi`,
    text: fapi ? "Turn off FAPI 2.0" : "Turn on FAPI 2.0",
    look: fapi ? "quiet" : "danger",
    fields: { fapi: String(!fapi) },
  });
  return html`<section class="panel"><h2>FAPI 2.0</h2>
<p class="soft">The FAPI 2.0 Security Profile restricts the client to pushed authorization requests, <code>private_key_jwt</code> with PS256, ES256 or EdDSA, and DPoP.</p>
<p>${
    fapi
      ? "The client follows FAPI 2.0. All other requests are rejected."
      : "To turn it on, add a public key, and remove all secrets and all redirect URIs without https. The client’s bearer tokens stop working immediately."
  }</p>
${membership.role === "owner" ? button : html`<p class="soft">Only owners can change this.</p>`}</section>`;
}
