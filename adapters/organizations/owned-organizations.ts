import type { Knex } from "knex";
import { QuotaExceeded } from "../quota-exceeded.ts";

/** Checks how many organizations a user owns. The caller's transaction has locked the user. @throws QuotaExceeded */
export async function checkOwned(trx: Knex.Transaction, userId: string, max: number): Promise<void> {
  const [row] = await trx("memberships").where({ user_id: userId, role: "owner" }).count({ owned: "*" });
  if (Number(row?.owned) > max) throw new QuotaExceeded("organizations", max);
}
