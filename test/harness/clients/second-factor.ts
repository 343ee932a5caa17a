import { Secret, TOTP } from "otpauth";
import type { TestService, TestUser } from "../service.ts";
import { apiAt, type Reply } from "./api.ts";
import { createColleague } from "./dashboard.ts";

/** The response to a login of an account with a second factor. */
export type Challenge = {
  code: string;
  login_token: string;
  expires_in: number;
  methods: string[];
  access_token?: string;
};

/** A user with an authenticator app. */
export type Protected = TestUser & {
  secret: string;
  recoveryCodes: string[];
  /** Returns a code that wasn't used yet: that of the next time step, which is accepted already, or of another one. */
  code(steps?: number): string;
  /** The code that confirmed the app. */
  usedCode: string;
};

const PERIOD_MS = 30_000;

/** Returns the code that an authenticator app shows. */
export function codeOf(secret: string, steps = 0): string {
  const generator = new TOTP({ secret: Secret.fromBase32(secret) });
  return generator.generate({ timestamp: Date.now() + steps * PERIOD_MS });
}

/** Sets up an authenticator app for a user, by JSON. */
export async function addTotp(
  { url }: Pick<TestService, "url">,
  user: TestUser & { token: string },
): Promise<Protected> {
  const api = apiAt(url, user.token);
  const started = await api.send<{ secret: string }>("POST", "/dashboard/account/totp");
  const { secret } = started.body;
  const usedCode = codeOf(secret);
  const json = { code: usedCode };
  const confirmed = await api.send<{ recovery_codes: string[] }>("POST", "/dashboard/account/totp/confirm", {
    json,
  });
  if (confirmed.status !== 200) throw new Error(`no app was set up: ${started.text} ${confirmed.text}`);
  const code = (steps = 1) => codeOf(secret, steps);
  return { ...user, secret, recoveryCodes: confirmed.body.recovery_codes, code, usedCode };
}

/** Creates a user with an authenticator app. */
export async function createProtected(service: TestService): Promise<Protected> {
  return addTotp(service, await createColleague(service, undefined));
}

/** Logs in with the password, by JSON. */
export function logIn({ url }: Pick<TestService, "url">, { username, password }: TestUser) {
  return apiAt(url).send<Challenge>("POST", "/auth/login", { json: { username, password } });
}

/** Sends the second factor of a login, by JSON. */
export function proveFactor(
  { url }: Pick<TestService, "url">,
  login_token: string,
  fields: object,
): Promise<Reply<{ access_token: string; code: string }>> {
  return apiAt(url).send("POST", "/auth/login/second-factor", { json: { login_token, ...fields } });
}
