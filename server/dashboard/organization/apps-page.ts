import type { AllowedApp } from "../../../adapters/grants.ts";
import type { Membership } from "../../../adapters/organizations.ts";
import { type Html, html } from "../html.ts";
import { badge, breakable, formButton, time } from "./controls.ts";
import { isManager, sectionPath } from "./layout.ts";
import { emptyState, table } from "./table.ts";

type AppsPage = {
  membership: Membership;
  person: { id: string; csrf?: string | undefined };
  apps: AllowedApp[];
  nameOf(app: AllowedApp): string;
};

/** The apps that may act for the organization. */
export function appsPage({ membership, person, apps, nameOf }: AppsPage): Html {
  if (apps.length === 0) {
    return emptyState(
      "No app may act for this organization",
      "When somebody allows an app, it is listed here, with what it may do, and you can take that back.",
    );
  }
  const path = sectionPath(membership.id, "apps");
  return table(
    "Apps",
    [
      { head: "App", cell: (app) => html`<strong>${nameOf(app)}</strong>` },
      { head: "For", cell: ({ username }) => breakable(username) },
      {
        head: "May",
        cell: ({ scopes }) =>
          html`<span class="tags">${scopes.map((scope) => html`${badge(scope)} `)}</span>`,
      },
      { head: "Allowed", cell: ({ grantedAt }) => time(grantedAt) },
      { head: "Last used", cell: ({ lastUsedAt }) => time(lastUsedAt) },
      {
        head: "Actions",
        cell: (app) =>
          isManager(membership) || app.userId === person.id
            ? formButton({
                action: `${path}/${app.id}/delete`,
                csrf: person.csrf,
                text: "Revoke",
                about: `${nameOf(app)} for ${app.username}`,
                look: "danger",
              })
            : "",
      },
    ],
    apps,
  );
}
