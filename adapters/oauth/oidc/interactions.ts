import type { Knex } from "knex";
import { type Adapter, type AdapterPayload, errors, type InteractionResults } from "oidc-provider";
import { sha256 } from "../../crypto/ids.ts";
import { isDuplicate } from "../../database/errors.ts";
import type { Database } from "../../database/index.ts";
import { toStored } from "../token-row.ts";

/** The consent page has already been answered. */
export class ConsentAnswered extends Error {
  override readonly name = "ConsentAnswered";
}

// Stands for the id of an interaction in the URL that resumes it.
const ID_PLACEHOLDER = "{id}";

/** Stores pending authorizations. Each is answered once and resumed once, also with concurrent requests. */
export function interactionAdapter({ knex, transaction }: Database): Partial<Adapter> {
  const open = (id: string) => pending(knex, id);
  return {
    async upsert(id, payload, expiresIn = 0) {
      const state = {
        payload: toStored(withoutIds(payload, id)),
        user_id: payload.result?.login?.accountId ?? null,
        expires_at: Date.now() + expiresIn * 1000,
      };
      if (isAnswer(payload.result)) return transaction((trx) => answer(trx, id, () => state));
      if (await open(id).update(state)) return;
      try {
        await knex("interactions").insert({ id_hash: sha256(id), ...state });
      } catch (error) {
        throw isDuplicate(error) ? alreadyUsed() : error;
      }
    },

    async find(id) {
      const row = await open(id).first("payload");
      return row && withId(JSON.parse(row.payload), id);
    },

    // Of two requests that resume the same authorization, the second finds nothing to end.
    async destroy(id) {
      if (!(await open(id).update({ destroyed_at: Date.now(), payload: "{}" }))) throw alreadyUsed();
    },
  };
}

/** Answers a consent page under a row lock. Throws ConsentAnswered, or InvalidRequest if it has ended. */
export function answerConsent(trx: Knex.Transaction, id: string, result: InteractionResults): Promise<void> {
  return answer(trx, id, (stored) => ({ payload: JSON.stringify({ ...stored, result }) }));
}

type Stored = { result?: InteractionResults };

async function answer(trx: Knex, id: string, toColumns: (stored: Stored) => object): Promise<void> {
  const row = await pending(trx, id).forUpdate().first("payload");
  if (!row) throw alreadyUsed();
  const stored: Stored = JSON.parse(row.payload);
  if (isAnswer(stored.result)) throw new ConsentAnswered();
  await pending(trx, id).update(toColumns(stored));
}

function pending(knex: Knex, id: string) {
  return knex("interactions")
    .where({ id_hash: sha256(id) })
    .whereNull("destroyed_at");
}

/** Returns whether a result is final: approved or denied. A login is not, because consent follows it. */
function isAnswer(result: InteractionResults | undefined): boolean {
  return Boolean(result?.consent || result?.error);
}

function alreadyUsed() {
  return new errors.InvalidRequest(
    "this sign-in request has already been completed; start again from the app",
  );
}

/** Removes the raw ids: that of the session, which the library never reads here, and the interaction's own. */
function withoutIds(payload: AdapterPayload, id: string): AdapterPayload {
  const { cookie: _, ...session } = payload.session ?? {};
  return {
    ...payload,
    ...(payload.session && { session: session as AdapterPayload["session"] }),
    ...(payload.returnTo && { returnTo: payload.returnTo.replace(id, ID_PLACEHOLDER) }),
  };
}

function withId(stored: AdapterPayload, id: string): AdapterPayload {
  const { returnTo } = stored;
  return { ...stored, ...(returnTo && { returnTo: returnTo.replace(ID_PLACEHOLDER, id) }), jti: id };
}
