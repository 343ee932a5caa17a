import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import type { ClientView, Disabled } from "../../../adapters/oauth/clients.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import type { Problem } from "../../../resources/http/problem.ts";
import { isPaid } from "../../../resources/plans.ts";
import { clientOf as clientOfOrganization } from "../../operations/client-common.ts";
import type { Operation } from "../../operations/operation.ts";
import { initial, time } from "../../ui/controls.ts";
import { sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { paidPlanState, tabs } from "../../ui/table.ts";
import { membershipOf, pathTo } from "../access.ts";
import { type Show, splitFieldErrors } from "../forms.ts";
import { addReading } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { ORGANIZATION, type RouteOptions } from "../route.ts";

export const CLIENT = `${ORGANIZATION}/client`;

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
type Tab = keyof typeof TABS;

/** Throws Problem if the organization has never been on a paid plan. */
export function clientOf(ctx: Context, clients: Storage["clients"]) {
  return clientOfOrganization({ storage: { clients }, organization: membershipOf(ctx) });
}

/** Adds a tab of its own address, and returns what shows it again after a rejected form. Programs get `operation`. */
export function addTab(
  router: Router,
  options: RouteOptions,
  tab: Tab,
  operation: Operation,
  render: (ctx: Context, client: ClientView, problem?: Problem) => Html | Promise<Html>,
): Show {
  const show: Show = async (ctx, error, problem) => {
    const { id, name, plan } = membershipOf(ctx);
    const client = await options.storage.clients.findByOrganization(id);
    const { error: summary = error } = splitFieldErrors(problem);
    const links = (Object.keys(TABS) as Tab[]).map((one) => ({
      href: tabPath(ctx, one),
      name: TABS[one],
      isCurrent: one === tab,
    }));
    showPage(ctx, {
      title: `${TABS[tab]} · API access`,
      heading: "API access",
      tile: initial(name),
      section: "client",
      error: summary,
      body: client
        ? html`${tabs("API access", links)}${disabledAlert(client.disabled)}${!isPaid(plan) && FREE_PLAN}${await render(ctx, client, problem)}`
        : paidPlanState("No client yet", NO_CLIENT, sectionPath(id, "plan")),
    });
  };
  addReading(router, options, operation, (ctx) => show(ctx));
  return show;
}

const FREE_PLAN = html`<p class="alert">This organization is on the Free plan, so its client is rejected. Upgrade to use it again.</p>`;
/** For an organization that has never been on a paid plan. */
const NO_CLIENT =
  "Upgrade to Growth or Premium to get an OAuth client: an ID and a secret for the REST API and MCP.";

export function tabPath(ctx: Context, tab: Tab): string {
  return `${pathTo(ctx, "overview")}/${tab}`;
}

function disabledAlert(disabled: Disabled | null): Html {
  if (!disabled) return html``;
  const { at, by, reason } = disabled;
  const who = by === OPERATOR.id ? "The operator of this service" : "An owner";
  return html`<p class="alert bad">${who} disabled this client on ${time(at)}. Its requests and tokens are rejected.${reason && html` Reason: ${reason}`}</p>`;
}
