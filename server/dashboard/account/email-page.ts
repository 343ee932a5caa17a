import { csrfField, field, formButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";

const PATH = "/dashboard/account/email";

/** Renders the section in which a user sets or removes the email address. */
export function emailPanel(email: string | null, hasMail: boolean, csrf: string | undefined): Html {
  return html`<section class="panel"><h2>Email address</h2>
<p>For security notices and password resets. It’s never used to sign in, and we don’t share it.</p>
${email ? html`<p>Your address is <strong><bdi>${email}</bdi></strong>.</p>` : html``}
${
  hasMail
    ? html`<form method="post" action="${PATH}" class="stack">${csrfField(csrf)}
${field({
  name: "email",
  label: email ? "New email address" : "Email address",
  type: "email",
  hint: "You’ll get a link that confirms the address.",
  attributes: html`autocomplete="email" maxlength="254" required`,
})}
<button type="submit">${email ? "Change email address" : "Add email address"}</button>
</form>`
    : html`<p class="hint">This server doesn’t send email at the moment.</p>`
}
${email ? formButton({ action: `${PATH}/delete`, csrf, text: "Remove email address" }) : html``}
</section>`;
}

/** Renders the page that a confirmation link opens. */
export function confirmEmailPage(action: string, email: string, csrf: string | undefined): Html {
  return html`<div class="panel"><p>Use <strong><bdi>${email}</bdi></strong> for your security notices and password resets?</p>
<form method="post" action="${action}">${csrfField(csrf)}<button type="submit">Confirm email address</button></form></div>`;
}
