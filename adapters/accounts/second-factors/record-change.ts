import { recordForMember } from "../../events/member-events.ts";
import type { Change } from "../../events/outbox.ts";
import { recordNotice } from "../notices.ts";

/** A change of a user's second factors; `name` is that of a passkey. */
type FactorChange =
  | {
      type: "member.second_factor_added" | "member.second_factor_removed";
      method: "totp" | "passkey";
      name?: string;
    }
  | { type: "member.recovery_codes_replaced" | "member.recovery_code_used" | "member.second_factors_reset" };

const NOTICES = {
  "member.second_factor_added": "second_factor_added",
  "member.second_factor_removed": "second_factor_removed",
  "member.second_factors_reset": "second_factor_removed",
  "member.recovery_codes_replaced": "recovery_codes_created",
  "member.recovery_code_used": "recovery_code_used",
} as const;

/** Records a change in the audit logs of the user's organizations, and as a notice. */
export async function recordFactorChange(change: Change, userId: string, what: FactorChange): Promise<void> {
  const { trx, actor } = change;
  const method = "method" in what ? { method: what.method } : {};
  await recordForMember(change, { userId, type: what.type, ...method });
  const name = nameOf(what);
  const by = actor.id === userId ? undefined : actor.id;
  await recordNotice(trx, {
    userId,
    kind: NOTICES[what.type],
    data: { address: actor.address, ...(name && { name }), ...(by && { by }) },
  });
}

function nameOf(what: FactorChange): string | undefined {
  if (what.type === "member.second_factors_reset") return "all of them, by the operator";
  if (!("method" in what)) return undefined;
  return what.method === "totp" ? "authenticator app" : `passkey ${what.name ?? ""}`.trim();
}
