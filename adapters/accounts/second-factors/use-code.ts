import type { Knex } from "knex";
import { isDuplicate } from "../../database/engine.ts";
import type { Database } from "../../database/index.ts";
import { rowOfUse, type SingleUse } from "../../oauth/replay.ts";
import { lockUser } from "../../organizations/reset-revocation.ts";

/** `too_late`: another code has completed the login. */
export type CodeUse = "accepted" | "incorrect" | "too_late";

/** Uses a code and the login token that it is for, or neither. `use` resolves to false if the code is incorrect. */
export async function useCode(
  { transaction }: Pick<Database, "transaction">,
  { userId, loginToken }: { userId: string; loginToken: SingleUse },
  use: (trx: Knex.Transaction) => Promise<boolean>,
): Promise<CodeUse> {
  try {
    return await transaction(async (trx) => {
      await lockUser(trx, userId);
      if (!(await use(trx))) return "incorrect";
      await trx("tokens").insert(rowOfUse(loginToken));
      return "accepted";
    });
  } catch (error) {
    if (isDuplicate(error)) return "too_late";
    throw error;
  }
}
