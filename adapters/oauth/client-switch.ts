import type { Knex } from "knex";
import type { Actor } from "../../resources/access/actor.ts";
import { OPERATOR_ID } from "../crypto/ids.ts";
import type { Outbox } from "../events/outbox.ts";
import { lockClient } from "./client-lock.ts";

/** Who disabled a client, when and why. `at` is epoch milliseconds; `by` is a user id or `operator`. */
export type Disabled = { at: number; by: string; reason: string | null };

/** Returns who disabled a client, or null if it is enabled. */
export function disabledOf(row: {
  disabled_at: number | null;
  disabled_by: string | null;
  disabled_reason: string | null;
}): Disabled | null {
  const { disabled_at: at, disabled_by: by, disabled_reason: reason } = row;
  return at === null || by === null ? null : { at, by, reason };
}

/** @see ClientStore */
export async function disableClient(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  { organizationId, reason }: { organizationId: string; reason: string | null },
): Promise<Disabled | undefined> {
  const id = await lockClient(trx, organizationId);
  if (!id) return undefined;
  const before = await findDisabled(trx, id);
  // An owner can't replace what the operator disabled.
  const isKept = before && (before.by === actor.id || before.by === OPERATOR_ID);
  if (isKept && (actor.id !== OPERATOR_ID || reason === null || reason === before.reason)) return before;
  const after: Disabled = { at: before?.at ?? Date.now(), by: actor.id, reason };
  await trx("clients")
    .where({ id })
    .update({ disabled_at: after.at, disabled_by: after.by, disabled_reason: reason });
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.disabled",
    subject: id,
    data: { client_id: id, reason },
  });
  return after;
}

/** @see ClientStore */
export async function enableClient(
  trx: Knex.Transaction,
  outbox: Outbox,
  actor: Actor,
  organizationId: string,
): Promise<"missing" | "operator" | undefined> {
  const id = await lockClient(trx, organizationId);
  if (!id) return "missing";
  const before = await findDisabled(trx, id);
  if (!before) return undefined;
  if (before.by === OPERATOR_ID && actor.id !== OPERATOR_ID) return "operator";
  await trx("clients").where({ id }).update({ disabled_at: null, disabled_by: null, disabled_reason: null });
  await outbox.record(trx, actor, {
    organizationId,
    type: "client.enabled",
    subject: id,
    data: { client_id: id },
  });
  return undefined;
}

async function findDisabled(trx: Knex.Transaction, id: string): Promise<Disabled | null> {
  const row = await trx("clients").where({ id }).first("disabled_at", "disabled_by", "disabled_reason");
  return row ? disabledOf(row) : null;
}
