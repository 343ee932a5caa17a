import type { Router } from "@koa/router";
import type { Context } from "koa";
import { Problem, toProblemBody } from "../../resources/http/problem.ts";
import { invalidField } from "../../resources/http/validate.ts";
import { readInput, textFieldOf } from "../http/request-body.ts";
import { needsSecondFactor } from "./complete-sign-in.ts";
import { unauthorized } from "./error-handler.ts";
import type { AuthOptions } from "./parts.ts";
import { LOGIN_TOKEN_S } from "./second-factors/login-tokens.ts";
import { codesOf } from "./second-factors/routes.ts";
import { type SignInProof, withFactor } from "./sign-in-proof.ts";
import { INCORRECT_CREDENTIALS, type LoginError } from "./verify-password.ts";

export async function programLogin(
  ctx: Context,
  result: SignInProof | LoginError,
  options: AuthOptions,
): Promise<void> {
  if ("error" in result) throw toProblem(result);
  if (await needsSecondFactor(options.storage, result)) return askForSecondFactor(ctx, result, options);
  await issueTokens(ctx, result, options);
}

export function programLoginRoutes(router: Router, options: AuthOptions): void {
  const { loginTokens, verifyCode } = options;

  router.post("/auth/login/second-factor", async (ctx) => {
    const input = await readInput(ctx);
    const codes = codesOf(input);
    if (Boolean(codes.totp) === Boolean(codes.recoveryCode))
      throw invalidField("totp", "must be sent, or recovery_code, but not both");
    const pending = loginTokens.read(textFieldOf(input.login_token));
    const factor = pending && (await verifyCode(ctx, pending, codes));
    if (!factor) {
      const message = "The login_token is invalid, expired or was already used. Sign in again.";
      throw unauthorized("invalid_login_token", message);
    }
    if ("error" in factor) throw toProblem(factor);
    await issueTokens(ctx, withFactor(pending.proof, factor), options);
  });
}

async function askForSecondFactor(
  ctx: Context,
  proof: SignInProof,
  { storage, loginTokens, base }: AuthOptions,
): Promise<void> {
  const { totp, recoveryCodes } = await storage.secondFactors.find(proof.accountId);
  const problem = new Problem(
    403,
    "second_factor_required",
    "Send the login_token and a code of your second factor to /auth/login/second-factor.",
  );
  ctx.status = problem.status;
  ctx.body = {
    ...toProblemBody(problem, base, ctx.state.requestId),
    login_token: loginTokens.create(proof),
    expires_in: LOGIN_TOKEN_S,
    methods: [...(totp ? ["totp"] : []), ...(recoveryCodes > 0 ? ["recovery_code"] : [])],
  };
  ctx.type = "application/problem+json";
}

async function issueTokens(
  ctx: Context,
  proof: SignInProof,
  { tokens, devices, storage }: AuthOptions,
): Promise<void> {
  const issued = await tokens.issueFor(proof, ctx.ip);
  if (!issued) throw toProblem(INCORRECT_CREDENTIALS);
  const { accountId: id, methods } = proof;
  ctx.state.signIn = { ...ctx.state.signIn, methods };
  await devices.remember(ctx, id);
  ctx.body = { user: { id, username: (await storage.accounts.find(id))?.username }, ...issued };
}

function toProblem({ error, status, code }: LoginError): Problem {
  const isIncorrect = code === "invalid_credentials" || code === "invalid_second_factor";
  return isIncorrect ? unauthorized(code, error) : new Problem(status, code, error);
}
