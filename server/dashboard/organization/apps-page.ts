import type { AuthorizedApp } from "../../../adapters/oauth/grants.ts";
import type { Membership } from "../../../adapters/organizations/store.ts";
import { badge, breakable, formButton, time } from "../../ui/controls.ts";
import { isManager, sectionPath } from "../../ui/dashboard-layout.ts";
import { type Html, html } from "../../ui/html.ts";
import { emptyState, table } from "../../ui/table.ts";

type AppsPage = {
  membership: Membership;
  user: { id: string; csrf?: string | undefined };
  apps: AuthorizedApp[];
  nameOf(app: AuthorizedApp): string;
};

/** Renders the apps that members authorized to act for the organization. */
export function appsPage({ membership, user, apps, nameOf }: AppsPage): Html {
  if (apps.length === 0) {
    return emptyState(
      "No authorized apps",
      "Apps appear here once a member authorizes them. You can revoke access at any time.",
    );
  }
  const path = sectionPath(membership.id, "apps");
  return table(
    "Authorized apps",
    [
      { head: "App", cell: (app) => html`<strong>${nameOf(app)}</strong>` },
      { head: "User", cell: ({ username }) => breakable(username) },
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
            ? formButton({
                action: `${path}/${app.id}/delete`,
                csrf: user.csrf,
                text: "Revoke access",
                about: `of ${nameOf(app)} for ${app.username}`,
                look: "danger",
              })
            : "",
      },
    ],
    apps,
  );
}
