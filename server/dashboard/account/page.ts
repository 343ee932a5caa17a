import { csrfField, field, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Column, table } from "../../ui/table.ts";
import { emailPanel } from "./email-page.ts";
import { factorsPanel, type ShownFactors } from "./second-factors/panel.ts";
import { type ShownSession, sessionsPanel } from "./sessions-panel.ts";

type Identity = { issuer: string; subject: string; label: string | null };

/** What the account page shows. */
export type AccountPage = {
  account: {
    user: { has_password: boolean; email: string | null };
    identities: Identity[];
    second_factors: ShownFactors;
    sessions: ShownSession[];
  };
  csrf: string | undefined;
  /** Whether the server can send emails. */
  hasMail: boolean;
  /** The name of the identity provider, if SSO is configured. */
  provider: string | undefined;
  mayAddPasskey: boolean;
};

const PATH = "/dashboard/account";

/** Renders the account page. */
export function accountPage({ account, csrf, hasMail, provider, mayAddPasskey }: AccountPage): Html {
  const { user, identities, sessions } = account;
  return html`${passwordPanel(user.has_password, csrf)}
${factorsPanel(account.second_factors, csrf, mayAddPasskey)}
${hasMail || user.email ? emailPanel(user.email, hasMail, csrf) : html``}
${sessionsPanel(sessions, provider, csrf)}
${provider || identities.length > 0 ? identitiesPanel(identities, provider, csrf) : html``}
<section class="panel"><h2>Apps you authorized</h2>
<p>See which apps act for you in your organizations, and revoke their access.</p>
${linkButton(`${PATH}/apps`, "View apps", "quiet")}
</section>
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
