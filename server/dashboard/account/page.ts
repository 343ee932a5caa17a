import { type Html, html } from "../html.ts";
import { badge, csrfField, field, formButton, linkButton, time } from "./controls.ts";
import { type Column, table } from "./table.ts";

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

/** What the page of the own account shows. */
export type AccountPage = {
  account: { user: { has_password: boolean }; identities: Identity[]; sessions: Session[] };
  person: { csrf?: string | undefined };
  /** The name of the external identity provider, if there is one. */
  provider: string | undefined;
};

const PATH = "/dashboard/account";

/** The own account. */
export function accountPage({ account, person: { csrf }, provider }: AccountPage): Html {
  const { user, identities, sessions } = account;
  return html`${passwordPanel(user.has_password, csrf)}
${sessionsPanel(sessions, csrf)}
${provider || identities.length > 0 ? identitiesPanel(identities, provider, csrf) : html``}
<section class="panel"><h2>Your data</h2>
<p>What is kept about you, as one file. Links and their clicks belong to your organizations.</p>
${linkButton(`${PATH}/export`, "Download", "quiet")}
</section>
${deletionPanel(user.has_password, csrf)}`;
}

function passwordPanel(hasPassword: boolean, csrf: string | undefined): Html {
  return html`<section class="panel"><h2>Password</h2>
<p>A new password ends every other sign-in, and the access of every app that acts for you.</p>
<form method="post" action="${PATH}/password" class="stack">${csrfField(csrf)}
${hasPassword ? currentPassword("current_password", "Current password") : html``}
${field({
  name: "new_password",
  label: "New password",
  type: "password",
  hint: "8 to 128 characters; a few words you can remember are best.",
  attributes: html`autocomplete="new-password" required`,
})}
<button type="submit">${hasPassword ? "Change the password" : "Set a password"}</button>
</form></section>`;
}

function sessionsPanel(sessions: Session[], csrf: string | undefined): Html {
  const columns: Column<Session>[] = [
    {
      head: "Where",
      cell: ({ means, user_agent, current }) =>
        html`${means === "token" ? "A program" : browserOf(user_agent)}${current ? html` ${badge("this one", "good")}` : html``}`,
    },
    { head: "Address", cell: ({ address }) => address ?? "unknown" },
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
              text: "End",
              about: `the sign-in of ${created_at.slice(0, 16)}`,
            }),
    },
  ];
  const hasOthers = sessions.some(({ current }) => !current);
  return html`<section><h2>Where you are signed in</h2>
${table("Where you are signed in", columns, sessions)}
${hasOthers ? html`<p>${formButton({ action: `${PATH}/sessions/delete`, csrf, text: "End all others" })}</p>` : html``}
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
  return html`<section class="panel"><h2>Other ways to sign in</h2>
${identities.length > 0 ? table("Other ways to sign in", columns, identities) : html`<p>None is linked to this account.</p>`}
${provider ? formButton({ action: `${PATH}/identities`, csrf, text: `Link ${provider}` }) : html``}
</section>`;
}

function deletionPanel(hasPassword: boolean, csrf: string | undefined): Html {
  return html`<section class="panel danger"><h2>Delete the account</h2>
<p>Organizations that nobody else belongs to are deleted with it: their short links end for good. It cannot be undone.</p>
<form method="post" action="${PATH}/delete" class="stack">${csrfField(csrf)}
${hasPassword ? currentPassword("password", "Your password") : html``}
<button type="submit" class="danger">Delete my account</button>
</form></section>`;
}

function currentPassword(name: string, label: string): Html {
  return field({ name, label, type: "password", attributes: html`autocomplete="current-password" required` });
}

/** The name of a browser and its system, as far as it says so; only for people to recognise their own. */
function browserOf(userAgent: string | null): string {
  const text = userAgent ?? "";
  const browser = /(Firefox|Edg|OPR|Chrome|Safari)(?=\/)/.exec(text)?.[1];
  const system = /(Windows|Android|iPhone|iPad|Mac OS X|Linux)/.exec(text)?.[1];
  const name = { Edg: "Edge", OPR: "Opera" }[browser ?? ""] ?? browser;
  return [name ?? "A browser", system && `on ${system}`].filter(Boolean).join(" ");
}
