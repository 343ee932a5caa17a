import { Secret, TOTP } from "otpauth";
import type { z } from "zod";
import type { secondFactorMembers } from "../../../server/operations/sign-in.ts";
import type { TestService, TestUser } from "../service.ts";
import { apiAt, type Reply } from "./api.ts";
import { createColleague } from "./dashboard.ts";

export type Challenge = z.output<typeof secondFactorMembers> & { code: string; access_token?: string };

export type Protected = Awaited<ReturnType<typeof addTotp>>;

const PERIOD_MS = 30_000;

export function codeOf(secret: string, steps = 0): string {
  const generator = new TOTP({ secret: Secret.fromBase32(secret) });
  return generator.generate({ timestamp: Date.now() + steps * PERIOD_MS });
}

export async function addTotp({ url }: Pick<TestService, "url">, user: TestUser & { token: string }) {
  const api = apiAt(url, user.token);
  const started = await api.send<{ secret: string }>("POST", "/dashboard/account/totp");
  const { secret } = started.body;
  const usedCode = codeOf(secret);
  const path = "/dashboard/account/totp/confirm";
  const confirmed = await api.send<{ recovery_codes: string[] }>("POST", path, { json: { code: usedCode } });
  if (confirmed.status !== 200) throw new Error(`no app was set up: ${started.text} ${confirmed.text}`);
  /** Returns a code that wasn't used yet: that of the next time step, which is accepted already, or of another one. */
  const code = (steps = 1) => codeOf(secret, steps);
  return { ...user, secret, recoveryCodes: confirmed.body.recovery_codes, code, usedCode };
}

export async function createProtected(service: TestService): Promise<Protected> {
  return addTotp(service, await createColleague(service, undefined));
}

export function logIn({ url }: Pick<TestService, "url">, { username, password }: TestUser) {
  return apiAt(url).send<Challenge>("POST", "/auth/login", { json: { username, password } });
}

export function proveFactor(
  { url }: Pick<TestService, "url">,
  login_token: string,
  fields: object,
): Promise<Reply<{ access_token: string; code: string }>> {
  return apiAt(url).send("POST", "/auth/login/second-factor", { json: { login_token, ...fields } });
}
