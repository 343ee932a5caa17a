import type { Context } from "koa";
import { Problem } from "../../resources/http/problem.ts";
import type { CurrentSignIn } from "../operations/operation.ts";
import type { AuthOptions } from "./auth-options.ts";
import { requireRecentSignIn } from "./authenticate.ts";
import { enforceLimit } from "./error-handler.ts";
import { keyReference } from "./sign-in-proof.ts";

type Options = Pick<
  AuthOptions,
  "authenticationLimits" | "devices" | "passwords" | "relyingParty" | "sessions" | "signIn" | "tokens"
>;

/** Returns what operations may do with the sign-in of a request. A browser signs in again at `returnTo`. */
export function currentSignIn(ctx: Context, options: Options, returnTo: string): CurrentSignIn {
  const { authenticationLimits, devices, passwords, relyingParty, sessions, signIn, tokens } = options;
  const { user } = ctx.state;
  const isSession = user.means === "session";
  return {
    requireRecent: () => requireRecentSignIn(ctx, returnTo),

    async isPassword(password) {
      try {
        await signIn(ctx, user.username, password);
        return true;
      } catch (error) {
        if (error instanceof Problem && error.code === "invalid_credentials") return false;
        throw error;
      }
    },

    hashPassword: (password) => passwords.hash(password),

    async limitGuesses(verify) {
      const { secondFactor } = authenticationLimits;
      enforceLimit(await secondFactor.attempt(user.id));
      const result = await verify();
      await secondFactor.succeeded(user.id);
      return result;
    },

    verifyPasskey: async (response) => relyingParty?.verifyRegistration(response, user),

    async renew(factor) {
      if (!isSession) return;
      const amr = factor?.method === "passkey" ? keyReference(factor) : "otp";
      await sessions.renew(ctx, factor && { method: factor.method, amr });
    },

    async forgetFactor(method) {
      if (isSession) await sessions.forgetFactor(ctx, method);
    },

    rememberDevice: () => devices.remember(ctx, user.id, { silent: true }),

    end: () => (isSession ? sessions.end(ctx, user) : tokens.end(user.sessionId)),
  };
}
