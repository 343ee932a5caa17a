import type { Router } from "@koa/router";
import { ACCOUNT } from "../../operations/account.ts";
import { confirmEmail, getPendingEmail, removeEmail, requestEmailChange } from "../../operations/email.ts";
import { CSRF_FIELD, field, formButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import type { Show } from "../forms.ts";
import { addOperation, addReading, runOperation } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import type { RouteOptions } from "../route.ts";

const PATH = `${ACCOUNT}/email`;

export function emailRoutes(router: Router, options: RouteOptions, show: Show): void {
  const to = () => ACCOUNT;
  addOperation(router, options, requestEmailChange, { show, to });
  addOperation(router, options, removeEmail, { to });
  addReading(router, options, getPendingEmail, async (ctx) => {
    const { email } = await runOperation(ctx, options, getPendingEmail);
    const body = confirmEmailPage(ctx.path, email);
    showPage(ctx, { title: "Confirm your email address", body });
  });
  addOperation(router, options, confirmEmail, { to });
}

export function emailPanel(email: string | null, hasMail: boolean): Html {
  return html`<section class="panel"><h2>Email address</h2>
<p>For security notices and password resets. It’s never used to sign in, and we don’t share it.</p>
${email && html`<p>Your address is <strong><bdi>${email}</bdi></strong>.</p>`}
${
  hasMail
    ? html`<form method="post" action="${PATH}" class="stack">${CSRF_FIELD}
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
${email && formButton({ action: `${PATH}/delete`, text: "Remove email address" })}
</section>`;
}

function confirmEmailPage(action: string, email: string): Html {
  return html`<div class="panel"><p>Use <strong><bdi>${email}</bdi></strong> for your security notices and password resets?</p>
<form method="post" action="${action}">${CSRF_FIELD}<button type="submit">Confirm email address</button></form></div>`;
}
