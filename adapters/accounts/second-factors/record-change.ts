import type { Knex } from "knex";
import type { Actor } from "../../../resources/access/actor.ts";
import { recordForMember } from "../../events/member-events.ts";
import type { Outbox } from "../../events/outbox.ts";
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
export async function recordChange(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  userId: string,
  change: FactorChange,
): Promise<void> {
  const method = "method" in change ? { method: change.method } : {};
  await recordForMember(trx, outbox, actor, { userId, type: change.type, ...method });
  const name = nameOf(change);
  const by = actor.id === userId ? undefined : actor.id;
  await recordNotice(trx, {
    userId,
    kind: NOTICES[change.type],
    data: { address: actor.address, ...(name && { name }), ...(by && { by }) },
  });
}

function nameOf(change: FactorChange): string | undefined {
  if (change.type === "member.second_factors_reset") return "all of them, by the operator";
  if (!("method" in change)) return undefined;
  return change.method === "totp" ? "authenticator app" : `passkey ${change.name ?? ""}`.trim();
}
