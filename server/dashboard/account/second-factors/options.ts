import type { Context } from "koa";
import type { Storage } from "../../../../adapters/index.ts";
import { tooManyRequests } from "../../../auth/error-handler.ts";
import type { RelyingParty } from "../../../auth/passkeys/webauthn.ts";
import type { Sessions } from "../../../auth/sessions.ts";
import type { AuthenticationLimits } from "../../../rate-limits/authentication.ts";
import { signedInUserOf } from "../../access.ts";
import type { OneTimeView } from "../../one-time-view.ts";

export const ACCOUNT = "/dashboard/account";

/** New recovery codes, which a page shows once. */
export type NewCodes = { codes: string[] };

/** What the routes of second factors need. */
export type FactorOptions = {
  storage: Pick<Storage, "secondFactors" | "organizations">;
  sessions: Sessions;
  authenticationLimits: AuthenticationLimits;
  /** Undefined if `BASE_URL` is an IP address. */
  relyingParty: RelyingParty | undefined;
  codesView: OneTimeView<NewCodes>;
};

/** Counts an attempt to enter a code. @throws Problem 429 */
export async function requireGuess(
  ctx: Context,
  { authenticationLimits }: Pick<FactorOptions, "authenticationLimits">,
): Promise<void> {
  const wait = await authenticationLimits.secondFactor.attempt(signedInUserOf(ctx).id);
  if (wait) throw tooManyRequests(wait);
}
