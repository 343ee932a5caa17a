import { OPERATOR } from "../../resources/events/types.ts";
import { showDisabled } from "../clients/client-view.ts";
import { missingClient } from "./clients.ts";
import type { Command } from "./command.ts";
import { EXAMPLE_ORG, findOrganization, ORG_ID } from "./organizations.ts";
import { reasonOf, reasonOption } from "./reason.ts";

/** `client disable` and `client enable` */
export const clientSwitchCommands: Command[] = [
  {
    name: "client disable",
    summary: "Disable the client: it gets no new tokens, and all its tokens are inactive",
    arguments: { "<org-id>": ORG_ID },
    options: reasonOption("the organization"),
    example: `${EXAMPLE_ORG} --reason "Leaked secret"`,
    needs: "schema",
    async run({ args: [id], options, storage }) {
      const reason = reasonOf(options);
      await findOrganization(storage, id);
      const disabled = await storage.clients.disable(id as string, reason, OPERATOR);
      if (!disabled) throw missingClient(id);
      const client = await storage.clients.findByOrganization(id as string);
      return { client_id: client?.clientId, disabled: showDisabled(disabled) };
    },
  },
  {
    name: "client enable",
    summary: "Enable a disabled client and its unexpired tokens",
    arguments: { "<org-id>": ORG_ID },
    example: EXAMPLE_ORG,
    needs: "schema",
    async run({ args: [id], storage }) {
      await findOrganization(storage, id);
      if (await storage.clients.enable(id as string, OPERATOR)) throw missingClient(id);
      const client = await storage.clients.findByOrganization(id as string);
      return { client_id: client?.clientId, disabled: null };
    },
  },
];
