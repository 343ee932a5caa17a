import type { Role } from "../../adapters/organizations.ts";
import { OPERATOR } from "../../resources/events.ts";
import { createPasswords, refusePassword, refuseUsername } from "../passwords.ts";
import { RESET_LINK_MS, resetUrl } from "../reset.ts";
import { type Command, CommandError } from "./command.ts";
import { findOrganization } from "./organizations.ts";

const ROLES: readonly Role[] = ["owner", "admin", "member"];

/** `user …` */
export const userCommands: Command[] = [
  {
    usage: "user create <username> --org <org-id> [--role owner|admin|member]",
    summary: "makes a person who can sign in; the password is read from stdin",
    options: { org: { type: "string" }, role: { type: "string" } },
    arguments: { least: 1, most: 1 },
    migrates: true,
    async run({ args, options, storage, readStdin }) {
      const username = args[0] as string;
      const role = (options.role ?? "member") as Role;
      if (typeof options.org !== "string") throw new CommandError("invalid_org", "--org is required");
      if (!ROLES.includes(role))
        throw new CommandError("invalid_role", `role must be one of ${ROLES.join(", ")}`);
      refuseIf("invalid_username", refuseUsername(username));
      const { id: organizationId } = await findOrganization(storage, options.org);
      // The line break belongs to the terminal, everything else to the password.
      const password = (await readStdin()).replace(/\r?\n$/, "");
      refuseIf("invalid_password", refusePassword(password, username));
      const hash = await createPasswords().hash(password);
      const user = await storage.accounts.create(username, hash, OPERATOR, { organizationId, role });
      if (!user) throw new CommandError("username_taken", `the username ${username} is taken`);
      return { user };
    },
  },
  {
    usage: "user reset-password <username>",
    summary: "makes a link, good once and for an hour, that sets a new password",
    arguments: { least: 1, most: 1 },
    migrates: true,
    async run({ args, storage, settings }) {
      const account = await storage.accounts.findByUsername(args[0] as string);
      if (!account) throw new CommandError("not_found", `there is no user ${args[0]}`);
      const token = await storage.accounts.createResetToken(account.id, RESET_LINK_MS);
      return { url: resetUrl(settings.BASE_URL ?? `http://localhost:${settings.PORT}`, token) };
    },
  },
];

function refuseIf(code: string, reason: string | undefined): void {
  if (reason) throw new CommandError(code, reason);
}
