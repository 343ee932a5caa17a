import { csrfField, formButton, linkButton, time } from "../../../ui/controls.ts";
import { type Html, html } from "../../../ui/html.ts";
import { type Column, table } from "../../../ui/table.ts";

type ShownPasskey = { id: string; name: string; created_at: string; last_used_at: string | null };

/** The second factors as the account page shows them. */
export type ShownFactors = {
  totp: { created_at: string; last_used_at: string | null } | null;
  passkeys: ShownPasskey[];
  recovery_codes_left: number;
};

const PATH = "/dashboard/account";

/** Renders the user's passkeys, authenticator app and recovery codes. */
export function factorsPanel(factors: ShownFactors, csrf: string | undefined, mayAddPasskey: boolean): Html {
  const hasFactor = factors.totp !== null || factors.passkeys.length > 0;
  return html`<section class="panel" id="second-factors"><h2>Passkeys and second factors</h2>
<p>${hasFactor ? "After your password, you confirm sign-ins with one of these." : "Add a second factor, so that a stolen password isn’t enough to sign in to your account."}</p>
<h3>Passkeys</h3>
${passkeyTable(factors.passkeys, csrf)}
${mayAddPasskey ? html`<p>${linkButton(`${PATH}/passkeys/new`, "Add passkey", "quiet")}</p>` : html`<p class="hint">Passkeys need a domain name, and this server’s address is an IP address.</p>`}
<h3>Authenticator app</h3>
${totpPart(factors.totp, csrf)}
${hasFactor ? recoveryPart(factors.recovery_codes_left, csrf) : html``}
</section>`;
}

function passkeyTable(passkeys: ShownPasskey[], csrf: string | undefined): Html {
  const columns: Column<ShownPasskey>[] = [
    { head: "Name", cell: ({ name }) => html`<bdi>${name}</bdi>` },
    { head: "Added", cell: ({ created_at }) => time(Date.parse(created_at)) },
    { head: "Last used", cell: ({ last_used_at }) => time(last_used_at ? Date.parse(last_used_at) : null) },
    {
      head: "Actions",
      cell: ({ id, name }) =>
        formButton({
          action: `${PATH}/passkeys/${id}/delete`,
          csrf,
          text: "Remove",
          about: `passkey ${name}`,
        }),
    },
  ];
  return passkeys.length > 0
    ? table("Passkeys", columns, passkeys)
    : html`<p class="soft">No passkeys yet.</p>`;
}

function totpPart(totp: ShownFactors["totp"], csrf: string | undefined): Html {
  if (!totp) {
    return html`<form method="post" action="${PATH}/totp">${csrfField(csrf)}<button type="submit" class="quiet">Set up authenticator app</button></form>`;
  }
  return html`<p>Set up ${time(Date.parse(totp.created_at))}, last used ${time(totp.last_used_at ? Date.parse(totp.last_used_at) : null)}.</p>
${formButton({ action: `${PATH}/totp/delete`, csrf, text: "Remove authenticator app" })}`;
}

function recoveryPart(left: number, csrf: string | undefined): Html {
  return html`<h3>Recovery codes</h3>
<p>${left === 1 ? "1 unused code" : `${left} unused codes`}. New codes replace all old ones.</p>
${formButton({ action: `${PATH}/recovery-codes`, csrf, text: "Create new recovery codes" })}`;
}
