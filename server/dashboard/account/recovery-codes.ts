import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { Storage } from "../../../adapters/index.ts";
import { Problem } from "../../../resources/http/problem.ts";
import { invalidField } from "../../../resources/http/validate.ts";
import { requireRecentSignIn } from "../../auth/authenticate.ts";
import type { RelyingParty } from "../../auth/second-factors/passkeys.ts";
import type { Sessions } from "../../auth/sessions.ts";
import { prefersHtml, readInput, textFieldOf } from "../../http/request-body.ts";
import type { AuthenticationLimits } from "../../rate-limits/authentication.ts";
import { copyButton, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { ACCOUNT, signedInUserOf } from "../access.ts";
import { type OneTimeView, shownOnce } from "../one-time-view.ts";
import { type Done, respondToChange } from "../responses.ts";

const PATH = `${ACCOUNT}/recovery-codes`;
const CODE = /^[0-9a-z]{6}(-[0-9a-z]{6}){3}$/;
const NO_FACTOR = "Recovery codes replace a second factor. Set up an authenticator app or a passkey first.";

export type FactorOptions = {
  storage: Pick<Storage, "secondFactors" | "organizations">;
  sessions: Sessions;
  authenticationLimits: AuthenticationLimits;
  /** Undefined if `BASE_URL` is an IP address. */
  relyingParty: RelyingParty | undefined;
  codesView: OneTimeView<{ codes: string[]; back: string }>;
};

export function recoveryCodeRoutes(router: Router, { storage, codesView }: FactorOptions): void {
  const { secondFactors, organizations } = storage;

  router.post(PATH, async (ctx) => {
    requireRecentSignIn(ctx, ACCOUNT);
    const codes = await secondFactors.recoveryCodes.replace(signedInUserOf(ctx).actor);
    if (!codes) throw new Problem(409, "second_factor_missing", NO_FACTOR);
    respondWithCodes(ctx, codesView, { codes, back: ACCOUNT });
  });

  router.post(`${PATH}/download`, downloadCodes);

  router.get(`${PATH}/:view`, async (ctx) => {
    ctx.state.memberships = await organizations.listByUser(signedInUserOf(ctx).id);
    codesView.show(ctx, {
      page: ({ codes, back }) => ({ title: "Recovery codes", body: codesPage(codes, back) }),
      kind: "list",
      explanation: shownOnce("A list of recovery codes", "If you didn’t save the codes, create new ones."),
      back: { href: ACCOUNT, text: "Go to account" },
    });
  });
}

/** Echoes the codes of the page as a file: they are stored as hashes, and no URL may contain them. */
async function downloadCodes(ctx: Context): Promise<void> {
  const codes = textFieldOf((await readInput(ctx)).codes).split(" ");
  if (!codes.every((code) => CODE.test(code))) throw invalidField("codes", "must be recovery codes");
  ctx.attachment("linkgate-recovery-codes.txt");
  ctx.type = "text/plain";
  ctx.body = `${codes.join("\n")}\n`;
}

/**
 * Responds with new recovery codes: in a browser, on a page that is shown once and leads back. Without any, with a
 * confirmation.
 */
export function respondWithCodes(
  ctx: Context,
  codesView: FactorOptions["codesView"],
  { codes, back, done }: { codes: string[]; back: string; done?: Done },
): void {
  const body = codes.length > 0 ? { recovery_codes: codes } : undefined;
  if (prefersHtml(ctx) && body) codesView.redirect(ctx, PATH, { codes, back });
  else respondToChange(ctx, { to: back, done, body });
}

function codesPage(codes: string[], back: string): Html {
  return html`<div class="panel" data-once>
<p class="alert">Save these codes now, for example in a password manager. You won’t be able to see them again.</p>
<p>If you lose your authenticator app or passkey, each code signs you in once instead.</p>
<ul class="codes">${codes.map((code) => html`<li><code>${code}</code></li>`)}</ul>
<div class="actions">${copyButton(codes.join("\n"), "the recovery codes")}${formButton({
    action: `${PATH}/download`,
    text: "Download as text",
    fields: { codes: codes.join(" ") },
  })}${linkButton(back, back === ACCOUNT ? "Done" : "Continue")}</div>
</div>`;
}
