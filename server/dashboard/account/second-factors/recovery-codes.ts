import type { Router } from "@koa/router";
import type { Context } from "koa";
import { Problem } from "../../../../resources/http/problem.ts";
import { requireRecentSignIn } from "../../../auth/authenticate.ts";
import { prefersHtml } from "../../../http/request-body.ts";
import { linkButton } from "../../../ui/controls.ts";
import { type Html, html } from "../../../ui/html.ts";
import { signedInUserOf } from "../../access.ts";
import { type OneTimeView, showAlreadyShown } from "../../one-time-view.ts";
import { type Done, respondToChange, showPage } from "../../responses.ts";
import { ACCOUNT, type FactorOptions, type NewCodes } from "./options.ts";

const PATH = `${ACCOUNT}/recovery-codes`;

/** Adds the routes that replace the recovery codes and show new ones once. */
export function recoveryCodeRoutes(router: Router, { storage, codesView }: FactorOptions): void {
  const { secondFactors, organizations } = storage;

  router.post(PATH, async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const codes = await secondFactors.recoveryCodes.replace(signedInUserOf(ctx).actor);
    if (!codes) throw noFactor();
    respondWithCodes(ctx, codesView, codes);
  });

  router.get(`${PATH}/:view`, async (ctx) => {
    ctx.state.memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    const shown = codesView.open(ctx);
    if (shown) return showPage(ctx, { title: "Recovery codes" }, codesPage(shown));
    return showAlreadyShown(ctx, undefined, {
      kind: "list",
      name: "A list of recovery codes",
      advice: "If you didn’t save the codes, create new ones.",
      back: { href: ACCOUNT, text: "Go to account" },
    });
  });
}

/** Responds with new recovery codes: in a browser, on a page that is shown once. Without any, with a confirmation. */
export function respondWithCodes(
  ctx: Context,
  codesView: OneTimeView<NewCodes>,
  codes: string[],
  done?: Done,
): void {
  if (prefersHtml(ctx) && codes.length > 0) {
    codesView.redirect(ctx, PATH, { codes });
    return;
  }
  respondToChange(ctx, {
    to: ACCOUNT,
    ...(done && { done }),
    ...(codes.length > 0 && { body: { recovery_codes: codes } }),
  });
}

function codesPage({ codes }: NewCodes): Html {
  return html`<div class="panel" data-once>
<p class="alert">Save these codes now, for example in a password manager. You won’t be able to see them again.</p>
<p>If you lose your authenticator app or passkey, each code signs you in once instead.</p>
<ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<div class="actions">${linkButton(ACCOUNT, "Done")}</div>
</div>`;
}

function noFactor(): Problem {
  return new Problem(
    409,
    "second_factor_missing",
    "Recovery codes replace a second factor. Set up an authenticator app or a passkey first.",
  );
}
