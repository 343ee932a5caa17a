import type { Adapter } from "oidc-provider";
import type { ClientStore } from "../clients.ts";
import type { Database } from "../database.ts";
import type { Journal } from "../journal.ts";
import { explained } from "../unavailable.ts";
import type { UsageNotes } from "../usage.ts";
import { clientAdapter } from "./clients.ts";
import { grantAdapter } from "./grants.ts";
import { interactionAdapter } from "./interactions.ts";
import type { ModelAdapter } from "./model.ts";
import { sessionAdapter } from "./sessions.ts";
import { type TokenStatements, tokenAdapter, tokenStatements } from "./tokens.ts";

/**
 * oidc-provider's storage contract over the database: a function from the name of a model to its adapter. Where the
 * library reads first and writes later, the adapter decides by one conditional statement and throws for the loser.
 */
export function createOidcAdapter(
  database: Database,
  clients: ClientStore,
  journal: Journal,
  usage: UsageNotes,
): (model: string) => Adapter {
  const tokens = tokenStatements(database);
  return (model) => ({
    ...unused(model),
    ...explained(adapterOf(model, { database, clients, tokens, journal, usage }), "find", "findByUid"),
  });
}

type Kept = {
  database: Database;
  clients: ClientStore;
  tokens: TokenStatements;
  journal: Journal;
  usage: UsageNotes;
};

function adapterOf(model: string, { database, clients, tokens, journal, usage }: Kept): ModelAdapter {
  switch (model) {
    case "Client":
      return clientAdapter(clients);
    case "Grant":
      return grantAdapter(database, journal);
    case "Session":
      return sessionAdapter(database);
    case "Interaction":
      return interactionAdapter(database);
    default:
      return tokenAdapter(tokens, usage, model);
  }
}

function unused(model: string): Adapter {
  const refuse = () => Promise.reject(new TypeError(`nothing of that kind is kept for ${model}`));
  return {
    upsert: refuse,
    find: refuse,
    findByUid: refuse,
    findByUserCode: refuse,
    consume: refuse,
    destroy: refuse,
    // A token lives no longer than its grant, and the grant is ended beside this call: nothing is left to do.
    revokeByGrantId: async () => {},
  };
}
