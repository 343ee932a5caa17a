import type { Router } from "@koa/router";
import type { Context } from "koa";
import { renderSVG } from "uqr";
import { notFound, Problem } from "../../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../../auth/authenticate.ts";
import { newTotpSecret, stepOfCode, totpUri } from "../../../credentials/totp.ts";
import { readInput, textFieldOf } from "../../../http/request-body.ts";
import { copyable, csrfField, field, linkButton } from "../../../ui/controls.ts";
import { type Html, html, trusted } from "../../../ui/html.ts";
import { signedInUserOf } from "../../access.ts";
import { redisplayForm, respondToChange, type Show, showPage } from "../../responses.ts";
import { ACCOUNT, type FactorOptions, requireGuess } from "./options.ts";
import { respondWithCodes } from "./recovery-codes.ts";

type TotpPage = {
  action: string;
  secret: string;
  uri: string;
  csrf: string | undefined;
  error: string | undefined;
};

const GROUP = /.{4}(?!$)/g;
// ISO/IEC 18004 requires a quiet zone of four modules.
const RENDERING = { border: 4, ecc: "M" } as const;

const PATH = `${ACCOUNT}/totp`;

/** Adds the routes with which a user sets up and removes an authenticator app. */
export function totpRoutes(router: Router, options: FactorOptions): void {
  const { sessions, codesView } = options;
  const { totp } = options.storage.secondFactors;

  const show: Show = async (ctx, error) => {
    requireRecentSignIn(ctx, PATH);
    const { id, username, csrf } = signedInUserOf(ctx);
    const secret = await totp.findPending(id);
    if (!secret) return ctx.redirect(ACCOUNT);
    ctx.state.memberships = await options.storage.organizations.listByUser(id);
    const body = totpPage({ action: `${PATH}/confirm`, secret, uri: totpUri(secret, username), csrf, error });
    showPage(ctx, { title: "Set up an authenticator app", error }, body);
  };
  router.get(PATH, (ctx) => show(ctx));

  router.post(PATH, async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const { id, username } = signedInUserOf(ctx);
    const secret = newTotpSecret();
    if (!(await totp.start(id, secret))) throw alreadySetUp();
    respondToChange(ctx, { to: PATH, status: 201, body: { secret, uri: totpUri(secret, username) } });
  });

  router.post(`${PATH}/confirm`, redisplayForm(show), async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const { id, actor, means } = signedInUserOf(ctx);
    await requireGuess(ctx, options);
    const secret = await totp.findPending(id);
    if (!secret) throw notFound("authenticator app");
    const step = stepOfCode(secret, textFieldOf((await readInput(ctx)).code));
    if (step === undefined) throw wrongCode();
    const codes = await totp.confirm(secret, step, actor);
    if (!codes) throw notFound("authenticator app");
    await options.authenticationLimits.secondFactor.succeeded(id);
    if (means === "session") await sessions.renew(ctx, { method: "totp", amr: "otp" });
    respondWithCodes(ctx, codesView, codes, "totp-added");
  });

  const remove = async (ctx: Context) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const { actor, sessionId, means } = signedInUserOf(ctx);
    if (!(await totp.remove(actor, sessionId))) throw notFound("authenticator app");
    if (means === "session") await sessions.forgetFactor(ctx, "totp");
    respondToChange(ctx, { to: ACCOUNT, done: "totp-removed" });
  };
  router.delete(PATH, remove);
  router.post(`${PATH}/delete`, remove);
}

function wrongCode(): Problem {
  return new Problem(
    422,
    "invalid_code",
    "Incorrect code. Enter the current code of your authenticator app.",
    {
      errors: [{ field: "code", message: "must be the current code of the authenticator app" }],
    },
  );
}

function alreadySetUp(): Problem {
  return new Problem(
    409,
    "totp_already_set_up",
    "You already have an authenticator app. Remove it first to set up another one.",
  );
}

/** Renders the page that sets up an authenticator app. */
function totpPage({ action, secret, uri, csrf, error }: TotpPage): Html {
  return html`<section class="panel">
<ol class="steps">
<li>Scan this QR code with your authenticator app, or enter the key below.
<div class="qr" role="img" aria-label="QR code for your authenticator app">${trusted(renderSVG(uri, RENDERING))}</div>
<p>${copyable(secret.replace(GROUP, "$& "), "key")}</p></li>
<li>Enter the 6-digit code that the app shows.</li>
</ol>
<form method="post" action="${action}" class="stack">${csrfField(csrf)}
${field({
  name: "code",
  label: "Code",
  error,
  attributes: html`inputmode="numeric" autocomplete="one-time-code" maxlength="7" required autofocus`,
})}
<div class="actions"><button type="submit">Confirm code</button>${linkButton("/dashboard/account", "Cancel", "quiet")}</div>
</form></section>`;
}
