import type { Router } from "@koa/router";
import type { Context, Middleware } from "koa";
import type { z } from "zod";
import { Problem } from "../../resources/http/problem.ts";
import { invalidField, validate } from "../../resources/http/validate.ts";
import { readInput } from "../http/request-body.ts";
import { type OpenOperation, pathOf } from "../operations/operation.ts";
import { logIn, proveSecondFactor, refreshTokens, type secondFactorMembers } from "../operations/sign-in.ts";
import type { AuthOptions } from "./auth-options.ts";
import { needsSecondFactor } from "./complete-sign-in.ts";
import { limitVisits, unauthorized } from "./error-handler.ts";
import { LOGIN_TOKEN_S } from "./second-factors/login-tokens.ts";
import { type SignInProof, withFactor } from "./sign-in-proof.ts";
import { incorrectCredentials } from "./verify-password.ts";

/** Creates the handler of an operation that needs no sign-in. */
export function serve<Input extends z.ZodType, Output extends z.ZodType>(
  { input, status }: OpenOperation<Input, Output>,
  run: (ctx: Context, input: z.output<Input>) => Promise<z.input<Output>>,
): Middleware {
  return async function serveOperation(ctx) {
    const body = await run(ctx, validate(input, await readInput(ctx)));
    ctx.status = status ?? 200;
    ctx.body = body;
  };
}

export function programLogin(options: AuthOptions): Middleware {
  return serve(logIn, async (ctx, { username, password }) => {
    const proof = await options.signIn(ctx, username, password);
    if (await needsSecondFactor(options.storage, proof)) throw await secondFactorRequired(proof, options);
    return issueTokens(ctx, proof, options);
  });
}

export function programLoginRoutes(router: Router, options: AuthOptions): void {
  const { loginTokens, verifyCode, tokens } = options;

  router.post(
    pathOf(proveSecondFactor),
    serve(proveSecondFactor, async (ctx, { login_token, totp = "", recovery_code: recoveryCode = "" }) => {
      if (Boolean(totp) === Boolean(recoveryCode))
        throw invalidField("totp", "must be sent, or recovery_code, but not both");
      const pending = loginTokens.read(login_token);
      const factor = pending && (await verifyCode(ctx, pending, { totp, recoveryCode }));
      if (!factor) {
        const message = "The login_token is invalid, expired or was already used. Sign in again.";
        throw unauthorized("invalid_login_token", message);
      }
      return issueTokens(ctx, withFactor(pending.proof, factor), options);
    }),
  );

  router.post(
    pathOf(refreshTokens),
    limitVisits(options, "refresh"),
    serve(refreshTokens, async (ctx, { refresh_token }) => {
      const issued = await tokens.refresh(refresh_token, ctx.ip);
      if (issued) return issued;
      const message = "The refresh token is unknown, expired, revoked or already used.";
      throw unauthorized("invalid_grant", message);
    }),
  );
}

async function secondFactorRequired(
  proof: SignInProof,
  { storage, loginTokens }: AuthOptions,
): Promise<Problem> {
  const { totp, recoveryCodes } = await storage.secondFactors.find(proof.accountId);
  const detail = "Send the login_token and a code of your second factor to /auth/login/second-factor.";
  const members: z.input<typeof secondFactorMembers> = {
    login_token: loginTokens.create(proof),
    expires_in: LOGIN_TOKEN_S,
    methods: [...(totp ? ["totp" as const] : []), ...(recoveryCodes > 0 ? ["recovery_code" as const] : [])],
  };
  return new Problem(403, "second_factor_required", detail, { members });
}

async function issueTokens(
  ctx: Context,
  proof: SignInProof,
  { tokens, devices, signInAudit, storage }: AuthOptions,
): Promise<z.input<(typeof logIn)["output"]>> {
  const issued = await tokens.issueFor(proof, ctx.ip);
  const { accountId: id, methods } = proof;
  const account = await storage.accounts.find(id);
  if (!issued || !account) throw incorrectCredentials();
  ctx.state.signIn = { ...ctx.state.signIn, methods };
  await devices.remember(ctx, id);
  await signInAudit.signedIn(ctx, id);
  return { user: { id, username: account.username }, ...issued };
}
