import type { Router } from "@koa/router";
import { z } from "zod";
import type { EmailStore } from "../../../adapters/accounts/emails.ts";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { validate } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { emailAddress } from "../../http/email-address.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { signedInUserOf } from "../access.ts";
import { formFieldsOf, redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { confirmEmailPage } from "./email-page.ts";

type Options = {
  emails: EmailStore;
  /** Whether the server can send emails. */
  hasMail: boolean;
  show: Show;
};

const ACCOUNT = "/dashboard/account";
const PATH = `${ACCOUNT}/email`;
const change = z.strictObject({ email: emailAddress });

/** Adds the routes with which a user sets, confirms and removes the email address of the account. */
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
    const { id, csrf } = signedInUserOf(ctx);
    const email = await emails.find(ctx.params.token as string, id);
    if (!email) throw invalidLink();
    if (prefersHtml(ctx)) {
      return showPage(ctx, { title: "Confirm your email address" }, confirmEmailPage(ctx.path, email, csrf));
    }
    ctx.body = { email };
  });

  router.post(`${PATH}/:token`, async (ctx) => {
    const isConfirmed = await emails.confirm(ctx.params.token as string, signedInUserOf(ctx).actor);
    if (!isConfirmed) throw invalidLink();
    respondToChange(ctx, { to: ACCOUNT, done: "email-confirmed" });
  });
}

/** Returns the error of a server that can't send emails. */
export function mailDisabled(): Problem {
  return new Problem(
    409,
    "mail_disabled",
    "This server doesn't send email. Ask its operator to set SMTP_URL.",
  );
}

/** Returns the error of too many emails in a day. */
export function tooManyEmails(): Problem {
  return new Problem(429, "too_many_emails", "Too many emails were sent today. Try again tomorrow.");
}

function invalidLink(): Problem {
  return new Problem(
    404,
    "link_invalid",
    "The link was used, has expired, or belongs to another account. Enter the address on your account page again.",
  );
}
