import type { Router } from "@koa/router";
import type { Context } from "koa";
import type { SecondFactorStore } from "../../adapters/accounts/second-factors/index.ts";
import type { AccountStore } from "../../adapters/accounts/store.ts";
import { Problem, toProblemBody } from "../../resources/http/problem.ts";
import { readInput, textFieldOf } from "../http/request-body.ts";
import { needsSecondFactor } from "./complete-sign-in.ts";
import type { Devices } from "./devices.ts";
import type { FirstPartyTokens } from "./first-party-tokens.ts";
import { LOGIN_TOKEN_S, type LoginTokens } from "./second-factor/login-tokens.ts";
import { codesOf } from "./second-factor/routes.ts";
import type { VerifyCode } from "./second-factor/verify.ts";
import { type SignInProof, withFactor } from "./sign-in-proof.ts";
import { INCORRECT_CREDENTIALS, type LoginError } from "./verify-password.ts";

/** What a login by a program needs. */
export type ProgramLogin = {
  accounts: AccountStore;
  secondFactors: SecondFactorStore;
  loginTokens: LoginTokens;
  verifyCode: VerifyCode;
  tokens: FirstPartyTokens;
  devices: Devices;
  base: string;
};

/** Issues tokens for a password, or asks for the second factor of the account. */
export async function programLogin(
  ctx: Context,
  result: SignInProof | LoginError,
  options: ProgramLogin,
): Promise<void> {
  if ("error" in result) throw toProblem(result);
  if (await needsSecondFactor(options, result)) return askForSecondFactor(ctx, result, options);
  await issueTokens(ctx, result, options);
}

/** Adds `/auth/login/second-factor`, where a program proves the second factor and gets its tokens. */
export function programLoginRoutes(router: Router, options: ProgramLogin): void {
  const { loginTokens, verifyCode } = options;

  router.post("/auth/login/second-factor", async (ctx) => {
    const input = await readInput(ctx);
    const codes = codesOf(input);
    if (Boolean(codes.totp) === Boolean(codes.recoveryCode)) throw codeMissing();
    const pending = loginTokens.read(textFieldOf(input.login_token));
    if (!pending) throw loginTokenInvalid();
    const factor = await verifyCode(ctx, pending, codes);
    if (!factor) throw loginTokenInvalid();
    if ("error" in factor) throw toProblem(factor);
    await issueTokens(ctx, withFactor(pending.proof, factor), options);
  });
}

async function askForSecondFactor(
  ctx: Context,
  proof: SignInProof,
  { secondFactors, loginTokens, base }: ProgramLogin,
): Promise<void> {
  const { totp, recoveryCodes } = await secondFactors.find(proof.accountId);
  const problem = new Problem(
    403,
    "second_factor_required",
    "Send the login_token and a code of your second factor to /auth/login/second-factor.",
  );
  ctx.status = problem.status;
  ctx.body = {
    ...toProblemBody(problem, `${base}/docs`, ctx.state.requestId),
    login_token: loginTokens.create(proof),
    expires_in: LOGIN_TOKEN_S,
    methods: [...(totp ? ["totp"] : []), ...(recoveryCodes > 0 ? ["recovery_code"] : [])],
  };
  ctx.type = "application/problem+json";
}

async function issueTokens(
  ctx: Context,
  proof: SignInProof,
  { tokens, devices, accounts }: ProgramLogin,
): Promise<void> {
  const issued = await tokens.issueFor(proof, ctx.ip);
  if (!issued) throw toProblem(INCORRECT_CREDENTIALS);
  const { accountId: id, methods } = proof;
  ctx.state.signIn = { ...ctx.state.signIn, methods };
  await devices.remember(ctx, id);
  ctx.body = { user: { id, username: (await accounts.find(id))?.username }, ...issued };
}

/** Returns the error for a program: wrong credentials are a 401. */
function toProblem({ error, status, code }: LoginError): Problem {
  if (code !== "invalid_credentials" && code !== "invalid_second_factor")
    return new Problem(status, code, error);
  // RFC 9110 §11.6.1: a 401 names the authentication scheme
  return new Problem(401, code, error, { headers: { "WWW-Authenticate": "Bearer" } });
}

function loginTokenInvalid(): Problem {
  return new Problem(
    401,
    "invalid_login_token",
    "The login_token is invalid, expired or was already used. Sign in again.",
    { headers: { "WWW-Authenticate": "Bearer" } },
  );
}

function codeMissing(): Problem {
  const message = "must be sent, or recovery_code, but not both";
  return new Problem(422, "invalid_totp", `totp ${message}.`, { errors: [{ field: "totp", message }] });
}
