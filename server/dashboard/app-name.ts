import type { AuthorizedApp } from "../../adapters/oauth/grants.ts";
import type { AppIdentity } from "../clients/app-identity.ts";
import { badge, time } from "../ui/controls.ts";
import { type Html, html } from "../ui/html.ts";
import type { Column } from "../ui/table.ts";

/** Renders the name of an app, who publishes it, and which authorization it is if there are several alike. */
export function appName({ name, publisher }: AppIdentity, repeat: string | undefined): Html {
  return html`<strong><bdi>${name}</bdi></strong>${
    publisher && publisher !== name ? html` <span class="soft">${publisher}</span>` : html``
  }${repeat ? html`<br><span class="soft">${repeat}</span>` : html``}`;
}

/**
 * Numbers authorizations of one app by one user for one organization, oldest first, such as “authorization 1 of 2”.
 * @param apps newest first
 */
export function numberRepeats(apps: AuthorizedApp[]): Map<string, string> {
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

/** The columns of a table of authorized apps that say what each may do, since when, and when it last did. */
export const ACCESS_COLUMNS: Column<AuthorizedApp>[] = [
  {
    head: "Permissions",
    cell: ({ scopes }) => html`<span class="tags">${scopes.map((scope) => html`${badge(scope)} `)}</span>`,
  },
  { head: "Authorized", cell: ({ grantedAt }) => time(grantedAt) },
  { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
];
