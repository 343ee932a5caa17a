import type { Router } from "@koa/router";
import { renderSVG } from "uqr";
import { notFound, Problem } from "../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { enforceLimit } from "../../auth/error-handler.ts";
import { newTotpSecret, stepOfCode, totpUri } from "../../credentials/totp.ts";
import { seeOther } from "../../http/redirects.ts";
import { prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import { CSRF_FIELD, copyable, field, linkButton } from "../../ui/controls.ts";
import { type Html, html, trusted } from "../../ui/html.ts";
import { ACCOUNT, signedInUserOf } from "../access.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../responses.ts";
import { addChange } from "../route.ts";
import { type FactorOptions, respondWithCodes } from "./recovery-codes.ts";
import { type SetupReturn, setupReturnOf } from "./setup-return.ts";

const GROUP = /.{4}(?!$)/g;
// ISO/IEC 18004 requires a quiet zone of four modules.
const RENDERING = { border: 4, ecc: "M" } as const;

const PATH = `${ACCOUNT}/totp`;
const ALREADY_SET_UP = "You already have an authenticator app. Remove it first to set up another one.";

export function totpRoutes(router: Router, options: FactorOptions): void {
  const { storage, sessions, codesView, authenticationLimits } = options;
  const { totp } = storage.secondFactors;

  const show: Show = async (ctx, error) => {
    const back = await setupReturnOf(ctx);
    requireRecentSignIn(ctx, back.query(PATH));
    const { id, username } = signedInUserOf(ctx);
    const secret = await totp.findPending(id);
    if (!secret) return ctx.redirect(back.start);
    ctx.state.memberships = await storage.organizations.listByUser(id);
    const body = totpPage(secret, totpUri(secret, username), back, error);
    showPage(ctx, { title: "Set up an authenticator app", error, body });
  };
  router.get(PATH, (ctx) => show(ctx));

  router.post(PATH, async (ctx) => {
    const back = await setupReturnOf(ctx);
    requireRecentSignIn(ctx, back.start);
    const { id, username } = signedInUserOf(ctx);
    const secret = newTotpSecret();
    if (!(await totp.start(id, secret))) throw new Problem(409, "totp_already_set_up", ALREADY_SET_UP);
    respondToChange(ctx, {
      to: back.query(PATH),
      status: 201,
      body: { secret, uri: totpUri(secret, username) },
    });
  });

  router.post(`${PATH}/confirm`, redisplayForm(show), async (ctx) => {
    const back = await setupReturnOf(ctx);
    requireRecentSignIn(ctx, back.start);
    const { id, actor, means } = signedInUserOf(ctx);
    enforceLimit(await authenticationLimits.secondFactor.attempt(id));
    const secret = await totp.findPending(id);
    // The form was sent twice, or is older than the app.
    if (!secret && prefersHtml(ctx)) return seeOther(ctx, ACCOUNT);
    if (!secret) throw notFound("authenticator app");
    const step = stepOfCode(secret, textFieldOf((await readInput(ctx)).code));
    if (step === undefined) throw wrongCode();
    const codes = await totp.confirm(secret, step, actor);
    if (!codes) throw notFound("authenticator app");
    await authenticationLimits.secondFactor.succeeded(id);
    if (means === "session") await sessions.renew(ctx, { method: "totp", amr: "otp" });
    respondWithCodes(ctx, codesView, { codes, back: back.path, done: "totp-added" });
  });

  addChange(router, ["delete", PATH], {}, async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const { actor, sessionId, means } = signedInUserOf(ctx);
    if (!(await totp.remove(actor, sessionId))) throw notFound("authenticator app");
    if (means === "session") await sessions.forgetFactor(ctx, "totp");
    respondToChange(ctx, { to: ACCOUNT, done: "totp-removed" });
  });
}

function wrongCode(): Problem {
  const detail = "Incorrect code. Enter the current code of your authenticator app.";
  const message = "must be the current code of the authenticator app";
  return new Problem(422, "invalid_code", detail, { errors: [{ field: "code", message }] });
}

function totpPage(secret: string, uri: string, back: SetupReturn, error: string | undefined): Html {
  return html`<section class="panel">
<ol class="steps">
<li>Scan this QR code with your authenticator app, or enter the key below.
<div class="qr" role="img" aria-label="QR code for your authenticator app">${trusted(renderSVG(uri, RENDERING))}</div>
<p>${copyable(secret.replace(GROUP, "$& "), "key")}</p></li>
<li>Enter the 6-digit code that the app shows.</li>
</ol>
<form method="post" action="${PATH}/confirm" class="stack">${CSRF_FIELD}${back.field}
${field({
  name: "code",
  label: "Code",
  error,
  attributes: html`inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus`,
})}
<div class="actions"><button type="submit">Confirm code</button>${linkButton(back.path, "Cancel", "quiet")}</div>
</form></section>`;
}
