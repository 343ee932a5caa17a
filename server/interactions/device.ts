import type { Context, Middleware } from "koa";
import type { Interaction, KoaContextWithOIDC, Provider } from "oidc-provider";
import type { AuthOptions } from "../auth/auth-options.ts";
import { enforceLimit, redirectToLogin, SIGN_IN, showMessage } from "../auth/error-handler.ts";
import { checkOrigin, isChange } from "../http/csrf.ts";
import { describeBrowser } from "../http/describe-browser.ts";
import { textFieldOf } from "../http/request-body.ts";
import { ENDPOINTS } from "../oauth-endpoints.ts";
import { hidden } from "../ui/controls.ts";
import { html } from "../ui/html.ts";
import { alert, describedBy, messagePage, page } from "../ui/page.ts";

/** The program that asked for a code, as it calls itself, and the address that it asked from. */
export type Device = { program: string; address: string };

/** RFC 8628 §5.4: what users need to recognize a device of theirs. */
export function describeDevice(ctx: Context): Device {
  return { program: describeBrowser(ctx.get("user-agent")), address: ctx.ip };
}

/** Resolves to undefined for an authorization that a browser started. */
export async function deviceOf(provider: Provider, { deviceCode }: Interaction): Promise<Device | undefined> {
  const code = deviceCode && (await provider.DeviceCode.find(deviceCode));
  return code ? (code.deviceInfo as Device) : undefined;
}

// By the names of oidc-provider's errors.
const MESSAGES: Record<string, string> = {
  NoCodeError: "Enter the code.",
  NotFoundError: "This code isn’t valid. Compare it with the one on your device.",
  ExpiredError: "This code has expired. Start again on your device.",
  AlreadyUsedError: "This code has already been used. Start again on your device.",
};

/** Shows the form for a code, or how it ended. oidc-provider's own form has a step more, and a style of its own. */
export function showCodeForm(
  ctx: KoaContextWithOIDC & { state: { userCode?: string } },
  _form?: string,
  _out?: object,
  error?: Error & { userCode?: string },
): void {
  ctx.type = "html";
  if (error?.name === "AbortedError") {
    ctx.body = messagePage("Access denied", "The device wasn’t given access. You can close this page.");
    return;
  }
  const message = error && (MESSAGES[error.name] ?? "Something went wrong. Enter the code again.");
  if (message) ctx.status = 422;
  const code = error?.userCode ?? ctx.state.userCode ?? "";
  const known = html`Continue only if you just started this and your device shows the same code.`;
  const asked = html`Enter the code shown by your device or program.`;
  ctx.body = page(
    "Connect a device",
    html`<h1>Connect a device</h1>
<p>${code && !message ? known : asked}</p>
${alert(message, "error")}
<form method="post" action="${ENDPOINTS.code_verification.path}">
${hidden("xsrf", String((ctx.oidc.session?.state as { secret?: string } | undefined)?.secret))}
${hidden("confirm", "yes")}
<label for="user_code">Code</label>
<input id="user_code" name="user_code" value="${code}" required autofocus autocomplete="off" autocapitalize="characters" spellcheck="false" maxlength="20" placeholder="XXXX-XXXX"${describedBy(message)}>
<button type="submit">Continue</button>
</form>`,
  );
}

export function showConnected(ctx: KoaContextWithOIDC): void {
  ctx.type = "html";
  ctx.body = messagePage("Device connected", "You can close this page and continue on your device.");
}

/**
 * RFC 8628 §3.3. Only a signed-in user can enter a code, so guesses count for a user. A code in the address fills in the
 * form, and the user continues (§5.4: a link from someone else must not be enough).
 */
export function deviceSteps({ sessions, base, authenticationLimits }: AuthOptions): Middleware[] {
  return [
    async function requireUser(ctx, next) {
      const account = await sessions.account(ctx);
      if (!account && ctx.method === "POST")
        return showMessage(ctx, 401, "Sign in first", "Then enter the code again.", SIGN_IN);
      if (!account) return redirectToLogin(ctx, { returnTo: ctx.originalUrl });
      if (isChange(ctx)) {
        checkOrigin(ctx, base);
        enforceLimit(await authenticationLimits.userCode(account.id), "codes");
      }
      return next();
    },
    async function fillIn(ctx, next) {
      if (ctx.path !== ENDPOINTS.code_verification.path || ctx.method === "POST") return next();
      ctx.state.userCode = textFieldOf(ctx.query.user_code).slice(0, 20);
      ctx.querystring = "";
      return next();
    },
  ];
}
