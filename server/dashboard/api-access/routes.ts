import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { ClientProfile } from "../../../adapters/oauth/clients.ts";
import { found } from "../../../resources/http/problem.ts";
import { isPaid } from "../../../resources/plans.ts";
import { NAME_MAX } from "../../credentials/names.ts";
import { type Input, textFieldOf } from "../../http/request-body.ts";
import * as operations from "../../operations/client.ts";
import {
  addRedirectUri,
  listRedirectUris,
  removeRedirectUri,
  setRedirectUris,
} from "../../operations/redirect-uris.ts";
import { breakable, CSRF_FIELD, copyable, field, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";
import { membershipOf, pathTo } from "../access.ts";
import { type FieldErrors, formFieldsOf, splitFieldErrors } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import type { RouteModule, RouteOptions } from "../route.ts";
import { addKeyRoutes } from "./keys.ts";
import { addSecretRoutes, secretsSection } from "./secrets.ts";
import { addSecurityRoutes } from "./security.ts";
import { addTab, tabPath } from "./tabs.ts";

export const clientRoutes: RouteModule = (router, options) => {
  const showCredentials = addTab(router, options, "client", operations.getClient, (ctx, client) => {
    const path = pathTo(ctx, "client");
    const next = isPaid(membershipOf(ctx).plan)
      ? linkButton(`${path}/quick-start`, "Open quick start", "quiet")
      : linkButton(pathTo(ctx, "plan"), "Compare plans");
    return html`<section class="panel"><h2>Client ID</h2>
<p>${copyable(client.clientId, "client ID")}</p>
${next}
</section>
${secretsSection(client, path)}`;
  });
  addSecretRoutes(router, options, showCredentials);
  addKeyRoutes(router, options);
  addRedirectUriRoutes(router, options);
  addProfileRoutes(router, options);
  addSecurityRoutes(router, options);
  addTab(
    router,
    options,
    "client/endpoints",
    operations.listEndpoints,
    () => html`<section class="panel"><h2>Endpoints</h2>
<p class="soft">Most libraries need only the issuer, and find the others from it.</p>
<dl class="facts">${operations.endpointsOf(options.urls).map(
      ({ label, url }) => html`<dt>${label}</dt><dd>${copyable(url, `${label} URL`)}</dd>
`,
    )}</dl></section>`,
  );
};

function addProfileRoutes(router: Router, options: RouteOptions): void {
  const { clients } = options.storage;
  const to = (ctx: Context) => tabPath(ctx, "client/profile");
  const show = addTab(
    router,
    options,
    "client/profile",
    operations.getClientProfile,
    async (ctx, { clientId }, problem) => {
      const profile = found(await clients.findProfile(clientId), "client");
      const { errors } = splitFieldErrors(problem);
      return profilePage(to(ctx), profile, problem && (await formFieldsOf(ctx)), errors);
    },
  );
  addOperation(router, options, operations.setClientProfile, { show, to });
}

function profilePage(
  path: string,
  { name, organizationName, homepage }: ClientProfile,
  submitted: Input | undefined,
  errors: FieldErrors,
): Html {
  const values = submitted ?? { client_name: name, client_uri: homepage };
  return html`<form method="post" action="${path}" class="panel stack">${CSRF_FIELD}
<h2>Name and homepage</h2>
<p class="soft">Users see them when your app asks for access.</p>
${field({
  name: "client_name",
  label: "App name (optional)",
  value: textFieldOf(values.client_name),
  error: errors.client_name,
  hint: `Without one, users see ${organizationName}. With one, they see both.`,
  attributes: html`maxlength="${NAME_MAX}" autocomplete="off" placeholder="${organizationName}"`,
})}
${field({
  name: "client_uri",
  label: "Homepage (optional)",
  value: textFieldOf(values.client_uri),
  isWide: true,
  error: errors.client_uri,
  hint: "Where users can read about your app.",
  attributes: html`maxlength="${operations.HOMEPAGE_MAX}" placeholder="https://" inputmode="url" autocapitalize="none" autocomplete="off" spellcheck="false"`,
})}
<button type="submit">Save</button>
</form>`;
}

/** Programs replace the whole list, or add and remove one URI as the forms do. */
function addRedirectUriRoutes(router: Router, options: RouteOptions): void {
  const to = (ctx: Context) => tabPath(ctx, "client/redirect-uris");
  const show = addTab(
    router,
    options,
    "client/redirect-uris",
    listRedirectUris,
    async (ctx, { redirectUris }, problem) => {
      const { redirect_uri } = problem ? await formFieldsOf(ctx) : {};
      return urisPage(to(ctx), redirectUris, textFieldOf(redirect_uri), splitFieldErrors(problem).errors);
    },
  );
  addOperation(router, options, setRedirectUris);
  addOperation(router, options, addRedirectUri, { show, to });
  addOperation(router, options, removeRedirectUri, { show, to });
}

function urisPage(path: string, uris: string[], value: string, errors: FieldErrors): Html {
  const removeButton = (uri: string) =>
    formButton({
      action: `${path}/delete`,
      text: "Remove",
      about: uri,
      look: "danger",
      fields: { redirect_uri: uri },
    });
  const columns = { "Redirect URI": (uri: string) => html`<code>${breakable(uri)}</code>` };
  const list =
    uris.length > 0
      ? table("Redirect URIs", columns, uris, removeButton)
      : emptyState("No redirect URIs yet", "Without one, the client can only use client credentials.");
  return html`<section class="group"><div class="title"><div><h2>Redirect URIs</h2>
<p class="intro">Where users return after they have authorized your app.</p></div></div>
${list}
</section>
<form method="post" action="${path}" class="panel stack">${CSRF_FIELD}
${field({
  name: "redirect_uri",
  label: "New redirect URI",
  value,
  isWide: true,
  error: errors.redirect_uri,
  hint: "https URLs must match exactly. http is allowed for localhost, 127.0.0.1 and [::1], on any port. Private-use schemes such as com.example.app:/callback also work.",
  attributes: html`required maxlength="2048" placeholder="https://app.example.com/callback" inputmode="url" autocapitalize="none" autocomplete="off" spellcheck="false"`,
})}
<button type="submit">Add redirect URI</button>
</form>`;
}
