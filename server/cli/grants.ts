import { OPERATOR } from "../../resources/events/types.ts";
import { type Command, CommandError } from "./command.ts";

/** `grant …` */
export const grantCommands: Command[] = [
  {
    name: "grant revoke",
    summary: "Revoke an app's access for one user, with all its tokens",
    arguments: {
      "<grant-id>": 'ID of the grant, as the audit log shows it; after "--" if it starts with a hyphen',
    },
    example: "Zr3vYb0aQn5fTtK1Zr3vYb0aQn5fTtK1Zr3vYb0aQn5",
    needs: "schema",
    async run({ args: [id], storage }) {
      const isFound = await storage.grants.revokeAny(id as string, OPERATOR);
      if (!isFound) throw new CommandError("not_found", `Grant ${id} not found.`);
      return { revoked: id };
    },
  },
];
