import { OPERATOR } from "../../../resources/events/types.ts";
import { type Command, notFound } from "../execution/command.ts";

export const grantCommands: Command[] = [
  {
    name: "grant revoke",
    summary: "Revoke an app's access for one user",
    description: "Revoke an app's access for one user, with all its tokens",
    arguments: {
      "<grant-id>": 'ID of the grant, as the audit log shows it; after "--" if it starts with a hyphen',
    },
    example: "Zr3vYb0aQn5fTtK1Zr3vYb0aQn5fTtK1Zr3vYb0aQn5",
    irreversible: () => "Revoke the app's access and all its tokens?",
    async run({ args: [id], storage }) {
      if (!(await storage.grants.revokeAny(id, OPERATOR))) throw notFound("Grant", id);
      return { revoked: id };
    },
  },
];
