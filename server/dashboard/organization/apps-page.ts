import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import type { AppIdentity } from "../../clients/app-identity.ts";
import { badge, breakable, linkButton, time } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";

/** An authorized app as it is shown. */
export type ShownApp = AuthorizedApp &
  AppIdentity & {
    /** Whether the organization lets its members connect this app. If not, its tokens are rejected. */
    isAllowed: boolean;
  };

type AppsTable = {
  membership: Membership;
  user: { id: string };
  apps: ShownApp[];
};

/** Renders the apps that members authorized to act for the organization. */
export function appsTable({ membership, user, apps }: AppsTable): Html {
  if (apps.length === 0) {
    return emptyState(
      "No authorized apps",
      "Apps appear here once a member authorizes them. You can revoke access at any time.",
      linkButton(sectionPath(membership.id, "connect"), "Connect an AI client"),
    );
  }
  const path = sectionPath(membership.id, "apps");
  return table(
    "Authorized apps",
    [
      { head: "App", cell: nameAndPublisher },
      { head: "User", cell: ({ username }) => html`<bdi>${breakable(username)}</bdi>` },
      {
        head: "Permissions",
        cell: ({ scopes }) =>
          html`<span class="tags">${scopes.map((scope) => html`${badge(scope)} `)}</span>`,
      },
      { head: "Authorized", cell: ({ grantedAt }) => time(grantedAt) },
      { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
      {
        head: "Actions",
        cell: (app) =>
          isManager(membership) || app.userId === user.id
            ? linkButton(
                `${path}/${app.id}/delete`,
                "Revoke access",
                "danger",
                `of ${app.name} for ${app.username}`,
              )
            : "",
      },
    ],
    apps,
  );
}

function nameAndPublisher({ name, publisher, isAllowed }: ShownApp): Html {
  return html`<strong><bdi>${name}</bdi></strong>${
    publisher && publisher !== name ? html` <span class="soft">${publisher}</span>` : html``
  }${isAllowed ? html`` : html` ${badge("not allowed", "warn")}`}`;
}
