import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import type { AppIdentity } from "../../clients/app-identity.ts";
import { badge, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";

/** An app that the user authorized, as it is shown. */
export type ShownAccountApp = AuthorizedApp & AppIdentity & { organizationName: string };

/** Renders the apps that the user has authorized. */
export function accountAppsTable(apps: ShownAccountApp[]): Html {
  if (apps.length === 0) {
    return emptyState("No authorized apps", "Apps appear here once you authorize them.");
  }
  return table(
    "Apps you authorized",
    [
      { head: "App", cell: nameOf },
      { head: "Organization", cell: ({ organizationName }) => html`<bdi>${organizationName}</bdi>` },
      {
        head: "Permissions",
        cell: ({ scopes }) =>
          html`<span class="tags">${scopes.map((scope) => html`${badge(scope)} `)}</span>`,
      },
      { head: "Authorized", cell: ({ grantedAt }) => time(grantedAt) },
      { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
      {
        head: "Actions",
        cell: ({ id, name, organizationName }) =>
          linkButton(
            `/dashboard/account/apps/${id}/delete`,
            "Revoke access",
            "danger",
            `of ${name} to ${organizationName}`,
          ),
      },
    ],
    apps,
  );
}

function nameOf({ name, publisher }: ShownAccountApp): Html {
  return html`<strong><bdi>${name}</bdi></strong>${
    publisher && publisher !== name ? html` <span class="soft">${publisher}</span>` : html``
  }`;
}
