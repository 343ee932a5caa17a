import { badge, csrfField, field, formatTime, formButton, linkButton, time } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, table } from "../../ui/table.ts";

type Session = {
  id: string;
  means: "session" | "token";
  address: string | null;
  user_agent: string | null;
  created_at: string;
  last_seen_at: string | null;
  current: boolean;
};
type Identity = { issuer: string; subject: string; label: string | null };

/** What the account page shows. */
export type AccountPage = {
  account: { user: { has_password: boolean }; identities: Identity[]; sessions: Session[] };
  csrf: string | undefined;
  /** The name of the identity provider, if SSO is configured. */
  provider: string | undefined;
};

const PATH = "/dashboard/account";

/** Renders the account page. */
export function accountPage({ account, csrf, provider }: AccountPage): Html {
  const { user, identities, sessions } = account;
  return html`${passwordPanel(user.has_password, csrf)}
${sessionsPanel(sessions, csrf)}
${provider || identities.length > 0 ? identitiesPanel(identities, provider, csrf) : html``}
<section class="panel"><h2>Your data</h2>
<p>Download everything we store about you. Links and clicks belong to your organizations and aren’t included.</p>
${linkButton(`${PATH}/export`, "Download data", "quiet")}
</section>
${deletionPanel(user.has_password, csrf)}`;
}

function passwordPanel(hasPassword: boolean, csrf: string | undefined): Html {
  return html`<section class="panel"><h2>Password</h2>
<p>Changing your password signs you out everywhere else and revokes the apps you authorized.</p>
<form method="post" action="${PATH}/password" class="stack">${csrfField(csrf)}
${hasPassword ? currentPassword("current_password", "Current password") : html``}
${field({
  name: "new_password",
  label: "New password",
  type: "password",
  hint: "At least 8 characters. A few random words work well.",
  attributes: html`autocomplete="new-password" required`,
})}
<button type="submit">${hasPassword ? "Change password" : "Set password"}</button>
</form></section>`;
}

function sessionsPanel(sessions: Session[], csrf: string | undefined): Html {
  const columns: Column<Session>[] = [
    {
      head: "Device",
      cell: ({ means, user_agent, current }) =>
        html`${means === "token" ? "API client" : browserOf(user_agent)}${current ? html` ${badge("this device", "good")}` : html``}`,
    },
    { head: "IP address", cell: ({ address }) => address ?? "unknown" },
    { head: "Signed in", cell: ({ created_at }) => time(Date.parse(created_at)) },
    { head: "Last used", cell: ({ last_seen_at }) => (last_seen_at ? time(Date.parse(last_seen_at)) : "–") },
    {
      head: "Actions",
      cell: ({ id, current, created_at }) =>
        current
          ? ""
          : formButton({
              action: `${PATH}/sessions/${id}/delete`,
              csrf,
              text: "Revoke",
              about: `session from ${formatTime(Date.parse(created_at))}`,
            }),
    },
  ];
  const hasOthers = sessions.some(({ current }) => !current);
  return html`<section><h2>Active sessions</h2>
${table("Active sessions", columns, sessions)}
${hasOthers ? html`<p>${formButton({ action: `${PATH}/sessions/delete`, csrf, text: "Sign out everywhere else" })}</p>` : html``}
</section>`;
}

function identitiesPanel(
  identities: Identity[],
  provider: string | undefined,
  csrf: string | undefined,
): Html {
  const columns: Column<Identity>[] = [
    { head: "Identity", cell: ({ label, subject }) => label ?? subject },
    { head: "Provider", cell: ({ issuer }) => issuer },
    {
      head: "Actions",
      cell: ({ issuer, subject, label }) =>
        formButton({
          action: `${PATH}/identities/delete`,
          csrf,
          text: "Unlink",
          about: label ?? subject,
          fields: { issuer, subject },
        }),
    },
  ];
  return html`<section class="panel"><h2>Linked identities</h2>
${identities.length > 0 ? table("Linked identities", columns, identities) : html`<p>No identity is linked to this account.</p>`}
${provider ? formButton({ action: `${PATH}/identities`, csrf, text: `Link ${provider}` }) : html``}
</section>`;
}

function deletionPanel(hasPassword: boolean, csrf: string | undefined): Html {
  return html`<section class="panel danger"><h2>Delete account</h2>
<p>This also deletes organizations that have no other members, and their short links stop working. You can’t undo this.</p>
<form method="post" action="${PATH}/delete" class="stack">${csrfField(csrf)}
${hasPassword ? currentPassword("password", "Your password") : html``}
<button type="submit" class="danger">Delete account</button>
</form></section>`;
}

function currentPassword(name: string, label: string): Html {
  return field({ name, label, type: "password", attributes: html`autocomplete="current-password" required` });
}

/** Returns the browser and operating system that a user agent names, to help users recognize their sessions. */
function browserOf(userAgent: string | null): string {
  const text = userAgent ?? "";
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)(?=\/)/.exec(text)?.[1];
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(text)?.[1];
  const name = { Edg: "Edge", OPR: "Opera" }[browser ?? ""] ?? browser;
  return [name ?? "Browser", system && `on ${system}`].filter(Boolean).join(" ");
}
