import type { ClientView } from "../../adapters/oauth/clients.ts";
import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import type { Membership } from "../../adapters/organizations/store.ts";
import type { TrustRule } from "../../adapters/organizations/trust-rules.ts";
import { withoutImplied } from "../../resources/access/scopes.ts";
import { isPaid } from "../../resources/plans.ts";
import type { AppIdentity } from "../clients/app-identity.ts";
import { describeAuthorizedApp, type ShownApp } from "../clients/client-view.ts";
import { abilities, describe as describeScope } from "../interactions/consent-page.ts";
import { badge, day, initial, linkButton, named, panelForm, time } from "../ui/controls.ts";
import { sectionPath } from "../ui/dashboard-layout.ts";
import { type Html, html } from "../ui/html.ts";
import { type Columns, pathWith, table } from "../ui/table.ts";
import { webhookChoice } from "./creator.ts";

type AppsTable<App> = {
  caption: string;
  badge?: (app: App) => Html;
  /** Says by whom or for which organization an app was authorized. */
  authorization: (app: App) => Html;
  path: string;
  /** Where the user sees what an app did; absent if the user may not. */
  activity?: ((app: App) => string) | undefined;
  /** Whose authorization it is, such as “for ada”; undefined if the user may not revoke it. */
  whose: (app: App) => string | undefined;
};

/** `apps` are newest first. */
export function authorizedAppsTable<App extends ShownApp>(
  apps: App[],
  { caption, badge: badgeOf = () => html``, authorization, path, activity, whose }: AppsTable<App>,
): Html {
  const repeats = numberRepeats(apps);
  const all: Columns<App> = {
    App: (app) => named(initial(app.name), html`${appName(app, repeats.get(app.id))}${badgeOf(app)}`),
    Permissions: ({ scopes }) =>
      html`<ul class="plain">${scopes.map((scope) => html`<li>${describeScope(scope)}</li>`)}</ul>`,
    Authorized: (app) => html`${day(app.grantedAt)}<br>${authorization(app)}`,
    "Last used": (app) => lastUse(app.lastUsedAt, activity?.(app), app.name),
  };
  return table(caption, all, apps, (app) => {
    const owner = whose(app);
    const about = [`of ${app.name} ${owner}`, repeats.get(app.id)].filter(Boolean).join(", ");
    return owner ? linkButton(`${path}/${app.id}/delete`, "Revoke access", "danger", about) : "";
  });
}

function lastUse(at: number | null, activity: string | undefined, name: string): Html {
  return html`${time(at)}${activity && html`<br><a href="${activity}">View activity<span class="visually-hidden"> of ${name}</span></a>`}`;
}

function appName({ name, publisher }: AppIdentity, repeat: string | undefined): Html {
  return html`<strong><bdi>${name}</bdi></strong>${
    publisher && publisher !== name && html`<br><span class="soft">${publisher}</span>`
  }${repeat && html`<br><span class="soft">${repeat}</span>`}`;
}

/** Numbers authorizations of one app by one user for one organization, oldest first: “authorization 1 of 2”. */
function numberRepeats(apps: AuthorizedApp[]): Map<string, string> {
  const alike = Map.groupBy(apps.toReversed(), ({ clientId, userId, organizationId }) =>
    [clientId, userId, organizationId].join(),
  );
  const repeats = [...alike.values()].filter(({ length }) => length > 1);
  return new Map(
    repeats.flatMap((group) =>
      group.map(({ id }, index) => [id, `authorization ${index + 1} of ${group.length}`]),
    ),
  );
}

type RevocationForm = {
  app: AuthorizedApp;
  apps: AuthorizedApp[];
  organizationName: string;
  /** Whether the user who revokes the app has authorized it. */
  isOwn: boolean;
  /** How many other authorizations of this app the organization has, if the user may see them. */
  others?: number;
  /** The hosts of the webhooks that the app created; absent if the user can't manage webhooks. */
  webhookHosts: string[] | undefined;
  path: string;
};

export function appRevocationForm(form: RevocationForm): Html {
  const { organizationName, isOwn, others = 0, webhookHosts, path } = form;
  const app = describeAuthorizedApp(form.app);
  const repeat = numberRepeats(form.apps).get(app.id);
  const user = isOwn ? "you" : html`<bdi>${app.username}</bdi>`;
  return panelForm(
    { action: `${path}/${app.id}/delete`, submit: "Revoke access", cancel: path, danger: "panel" },
    html`<p><strong><bdi>${app.name}</bdi></strong> loses its access to <strong><bdi>${organizationName}</bdi></strong> immediately. ${isOwn ? "You" : user} authorized it on ${time(app.grantedAt)}${repeat ? ` (${repeat})` : ""}.</p>
<ul>
<li>Its tokens stop working immediately.${permissions(app.scopes)}</li>
<li>${webhookHosts ? "Links" : "Links and webhooks"} that the app created stay.</li>
${others > 0 && html`<li>${others === 1 ? "Another authorization" : `${others} other authorizations`} of this app in the organization ${others === 1 ? "isn’t" : "aren’t"} affected.</li>`}
</ul>
${webhookChoice(webhookHosts ?? [], "this app", user)}`,
  );
}

function permissions(scopes: string[]): string {
  return scopes.length > 0 ? ` It could ${abilities(withoutImplied(scopes))}.` : "";
}

type Acting = {
  title: string;
  name: Html;
  lastUsedAt: number | null;
  activity?: string;
  page: string;
  pageName: string;
};

/** Renders what acts for an organization besides the apps that its members authorized: its client and workloads. */
export function ownClientList(membership: Membership, client: ClientView, rules: TrustRule[]): Html {
  const { id } = membership;
  const rows = [clientRow(membership, client), ...rules.map((rule) => ruleRow(id, rule))];
  const columns = {
    Name: ({ name }: Acting) => name,
    "Last used": ({ lastUsedAt, activity }: Acting) => lastUse(lastUsedAt, activity, "the client"),
  };
  return html`<section class="group"><h2>Your own API client${rules.length > 0 && " and workloads"}</h2>
${table("Own client and workloads", columns, rows, ({ title, page, pageName }) => linkButton(page, pageName, "quiet", `of ${title}`))}
</section>`;
}

function clientRow(membership: Membership, { clientId, secrets, keys, disabled }: ClientView): Acting {
  const { id, name, plan } = membership;
  const uses = [...secrets, ...keys].flatMap(({ lastUsedAt }) => lastUsedAt ?? []);
  const state = disabled ? badge("disabled", "bad") : isPaid(plan) ? html`` : badge("Free plan", "warn");
  return {
    title: name,
    name: named(
      initial(membership.name),
      html`<strong><bdi>${name}</bdi></strong> ${state}<br><span class="soft">the organization’s client</span>`,
    ),
    lastUsedAt: uses.length > 0 ? Math.max(...uses) : null,
    activity: pathWith(sectionPath(id, "audit"), { client_id: clientId }),
    page: sectionPath(id, "client"),
    pageName: "API access",
  };
}

function ruleRow(organizationId: string, { name, issuer, lastUsedAt }: TrustRule): Acting {
  return {
    title: name,
    name: html`<strong><bdi>${name}</bdi></strong><br><span class="soft">workload of ${new URL(issuer).host}</span>`,
    lastUsedAt,
    page: `${sectionPath(organizationId, "overview")}/workload-identity`,
    pageName: "Trust rules",
  };
}
