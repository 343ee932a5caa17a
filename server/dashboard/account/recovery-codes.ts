import type { Router } from "@koa/router";
import type { Context } from "koa";
import { invalidField } from "../../../resources/http/validate.ts";
import { readInput, textFieldOf } from "../../http/request-body.ts";
import { ACCOUNT } from "../../operations/account.ts";
import { replaceRecoveryCodes } from "../../operations/second-factors.ts";
import { copyButton, formButton, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { signedInUserOf } from "../access.ts";
import { type OneTimeView, shownOnce } from "../one-time-view.ts";
import { addOperation } from "../operation-routes.ts";
import type { AccountOptions } from "./options.ts";
import { setupReturnOf } from "./setup-return.ts";

const PATH = `${ACCOUNT}/recovery-codes`;
const CODE = /^[0-9a-z]{6}(-[0-9a-z]{6}){3}$/;

type CodesView = OneTimeView<{ codes: string[]; back: string }>;
export type FactorOptions = AccountOptions & { codesView: CodesView };

export function recoveryCodeRoutes(router: Router, options: FactorOptions): void {
  const { storage, codesView } = options;

  addOperation(router, options, replaceRecoveryCodes, {
    to: () => ACCOUNT,
    respond: (ctx, output) => showCodes(ctx, codesView, output),
  });

  router.post(`${PATH}/download`, downloadCodes);

  router.get(`${PATH}/:view`, async (ctx) => {
    ctx.state.memberships = await storage.organizations.listByUser(signedInUserOf(ctx).id);
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

/** Shows new recovery codes on a page that is shown once and leads back. Returns false without any. */
export function showCodes(
  ctx: Context,
  codesView: CodesView,
  created: { recovery_codes: string[] } | undefined,
): boolean {
  if (!created) return false;
  codesView.redirect(ctx, PATH, { codes: created.recovery_codes, back: setupReturnOf(ctx).path });
  return true;
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
