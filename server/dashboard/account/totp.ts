import type { Router } from "@koa/router";
import { renderSVG } from "uqr";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import { totpUri } from "../../credentials/totp.ts";
import { seeOther } from "../../http/redirects.ts";
import { prefersHtml } from "../../http/request-body.ts";
import { ACCOUNT } from "../../operations/account.ts";
import { confirmTotp, removeTotp, startTotp } from "../../operations/second-factors.ts";
import { CSRF_FIELD, copyable, field, linkButton } from "../../ui/controls.ts";
import { type Html, html, trusted } from "../../ui/html.ts";
import { signedInUserOf } from "../access.ts";
import type { Show } from "../forms.ts";
import { addOperation } from "../operation-routes.ts";
import { showPage } from "../responses.ts";
import { type FactorOptions, showCodes } from "./recovery-codes.ts";
import { type SetupReturn, setupReturnOf, withoutReturn } from "./setup-return.ts";

const GROUP = /.{4}(?!$)/g;
// ISO/IEC 18004 requires a quiet zone of four modules.
const RENDERING = { border: 4, ecc: "M" } as const;

const PATH = `${ACCOUNT}/totp`;

export function totpRoutes(router: Router, options: FactorOptions): void {
  const { storage, codesView } = options;
  const { totp } = storage.secondFactors;

  const show: Show = async (ctx, error) => {
    const back = setupReturnOf(ctx);
    requireRecentSignIn(ctx, back.query(PATH));
    const { id, username } = signedInUserOf(ctx);
    const secret = await totp.findPending(id);
    if (!secret) return ctx.redirect(back.start);
    ctx.state.memberships = await storage.organizations.listByUser(id);
    const body = totpPage(secret, totpUri(secret, username), back, error);
    showPage(ctx, { title: "Set up an authenticator app", error, body });
  };
  router.get(PATH, (ctx) => show(ctx));

  addOperation(router, options, startTotp, { to: (ctx) => setupReturnOf(ctx).query(PATH) });
  addOperation(router, options, confirmTotp, {
    show,
    toInput: withoutReturn,
    // The form was sent twice, or is older than the app.
    async before(ctx, next) {
      const isOutdated = prefersHtml(ctx) && !(await totp.findPending(signedInUserOf(ctx).id));
      return isOutdated ? seeOther(ctx, ACCOUNT) : next();
    },
    to: (ctx) => setupReturnOf(ctx).path,
    respond: (ctx, output) => showCodes(ctx, codesView, output),
  });
  addOperation(router, options, removeTotp, { to: () => ACCOUNT });
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
