import type { Router } from "@koa/router";
import { z } from "zod";
import type { EmailStore } from "../../../adapters/accounts/emails.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { emailAddress } from "../../http/email-address.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { CSRF_FIELD, field, formButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { ACCOUNT, signedInUserOf } from "../access.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";

type Options = {
  emails: EmailStore;
  hasMail: boolean;
  show: Show;
};

const PATH = `${ACCOUNT}/email`;
const change = z.strictObject({ email: emailAddress });

export function emailRoutes(router: Router, { emails, hasMail, show }: Options): void {
  router.post(PATH, redisplayForm(show), async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    if (!hasMail) throw mailDisabled();
    const { email } = validate(change, await formFieldsOf(ctx));
    if (!(await emails.requestChange(email, signedInUserOf(ctx).actor))) throw tooManyEmails();
    respondToChange(ctx, { to: ACCOUNT, done: "email-sent", status: 202, body: { email, confirmed: false } });
  });

  router.post(`${PATH}/delete`, async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    if (!(await emails.remove(signedInUserOf(ctx).actor))) throw notFound("email address");
    respondToChange(ctx, { to: ACCOUNT, done: "email-removed" });
  });

  router.get(`${PATH}/:token`, async (ctx) => {
    const { id } = signedInUserOf(ctx);
    const email = await emails.find(ctx.params.token as string, id);
    if (!email) throw invalidLink();
    if (prefersHtml(ctx)) {
      return showPage(ctx, { title: "Confirm your email address", body: confirmEmailPage(ctx.path, email) });
    }
    ctx.body = { email };
  });

  router.post(`${PATH}/:token`, async (ctx) => {
    const isConfirmed = await emails.confirm(ctx.params.token as string, signedInUserOf(ctx).actor);
    if (!isConfirmed) throw invalidLink();
    respondToChange(ctx, { to: ACCOUNT, done: "email-confirmed" });
  });
}

export function mailDisabled(): Problem {
  const detail = "This server doesn't send email. Ask its operator to set SMTP_URL.";
  return new Problem(409, "mail_disabled", detail);
}

export function tooManyEmails(): Problem {
  return new Problem(429, "too_many_emails", "Too many emails were sent today. Try again tomorrow.");
}

function invalidLink(): Problem {
  const detail =
    "The link was used, has expired, or belongs to another account. Enter the address on your account page again.";
  return new Problem(404, "link_invalid", detail);
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
