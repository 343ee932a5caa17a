import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import type { AppIdentity } from "../clients/app-identity.ts";
import { describeAuthorizedApp, type ShownApp } from "../clients/client-view.ts";
import { describe as describeScope } from "../interactions/consent-page.ts";
import { day, initial, linkButton, named, panelForm, time } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import { type Columns, table } from "../ui/table.ts";
import { webhookChoice } from "./created-webhooks.ts";

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
    "Last used": (app) => html`${time(app.lastUsedAt)}${activityLink(app, activity)}`,
  };
  return table(caption, all, apps, (app) => {
    const owner = whose(app);
    const about = [`of ${app.name} ${owner}`, repeats.get(app.id)].filter(Boolean).join(", ");
    return owner ? linkButton(`${path}/${app.id}/delete`, "Revoke access", "danger", about) : "";
  });
}

function activityLink<App extends ShownApp>(app: App, activity: AppsTable<App>["activity"]): Html {
  return html`${activity && html`<br><a href="${activity(app)}">View activity<span class="visually-hidden"> of ${app.name}</span></a>`}`;
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
<li>The access and refresh tokens of this authorization stop working${permissions(app.scopes)}.</li>
<li>${webhookHosts ? "Links" : "Links and webhooks"} that the app created stay.</li>
${others > 0 && html`<li>${others === 1 ? "Another authorization" : `${others} other authorizations`} of this app in the organization ${others === 1 ? "isn’t" : "aren’t"} affected.</li>`}
</ul>
${webhookChoice(webhookHosts ?? [], "this app", user)}`,
  );
}

function permissions(scopes: string[]): Html {
  if (scopes.length === 0) return html``;
  return html`: ${scopes.map((scope, index) => html`${index > 0 ? ", " : ""}<code>${scope}</code>`)}`;
}
