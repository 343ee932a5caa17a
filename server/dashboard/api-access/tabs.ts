import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { ClientView } from "../../../adapters/oauth/clients.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { isPaid } from "../../../resources/plans.ts";
import type { Operation } from "../../operations/operation.ts";
import { initial, linkButton } from "../../ui/controls.ts";
import { type PageContent, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState } from "../../ui/table.ts";
import { membershipOf, pathTo } from "../access.ts";
import { type Show, splitFieldErrors } from "../forms.ts";
import { addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteOptions } from "../route.ts";
import { disabledAlert } from "./client-switch.ts";

/** The tabs of API access: the path below the organization's → name. */
const TABS = {
  client: "Credentials",
  "client/keys": "Public keys",
  "workload-identity": "Workload identity",
  "client/redirect-uris": "Redirect URIs",
  "client/profile": "Name and homepage",
  "client/security": "Security",
  "client/endpoints": "Endpoints",
} as const;
export type Tab = keyof typeof TABS;

/** Adds a tab of its own address, and returns what shows it again after a rejected form. Programs get `operation`. */
export function addTab(
  router: Router,
  options: RouteOptions,
  tab: Tab,
  operation: Operation,
  body: (ctx: Context, client: ClientView, problem?: Problem) => Html | Promise<Html>,
): Show {
  const show: Show = async (ctx, error, problem) => {
    const client = await options.storage.clients.findByOrganization(membershipOf(ctx).id);
    const content = client && (await body(ctx, client, problem));
    const { error: summary = error } = splitFieldErrors(problem);
    showPage(ctx, { ...tabContent(ctx, tab, client, content), error: summary });
  };
  addReading(router, options, operation, (ctx) => show(ctx));
  return show;
}

/** Renders a tab below the others, or how to get a client. */
export function tabContent(
  ctx: Context,
  tab: Tab,
  client: ClientView | undefined,
  body: Html = html``,
): PageContent {
  const membership = membershipOf(ctx);
  const { id, plan } = membership;
  const page = {
    title: `${TABS[tab]} · API access`,
    heading: "API access",
    tile: initial(membership.name),
    section: "client" as const,
  };
  if (!client) return { ...page, body: noClient(id) };
  const freePlan =
    !isPaid(plan) &&
    html`<p class="alert">This organization is on the Free plan, so its client is rejected. Upgrade to use it again.</p>`;
  return { ...page, body: html`${tabLinks(ctx, tab)}${disabledAlert(client.disabled)}${freePlan}${body}` };
}

export function tabPath(ctx: Context, tab: Tab): string {
  return `${pathTo(ctx, "overview")}/${tab}`;
}

function tabLinks(ctx: Context, current: Tab): Html {
  const links = Object.entries(TABS).map(
    ([tab, name]) =>
      html`<li><a href="${tabPath(ctx, tab as Tab)}"${tab === current && html` aria-current="page"`}>${name}</a></li>
`,
  );
  return html`<nav class="tabs" aria-label="API access"><ul>
${links}</ul></nav>
`;
}

/** Renders the page of an organization that has never been on a paid plan. */
function noClient(organizationId: string): Html {
  return emptyState(
    "No client yet",
    "Upgrade to Growth or Premium to get an OAuth client: an ID and a secret for the REST API and MCP.",
    linkButton(sectionPath(organizationId, "plan"), "Compare plans"),
  );
}
