import type { Role } from "../../adapters/organizations/store.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import { createPasswords } from "../credentials/passwords.ts";
import { RESET_LINK_MS, resetUrl } from "../credentials/reset-links.ts";
import { validateNewUsername } from "../credentials/usernames.ts";
import { publicUrlsOf } from "../settings/public-urls.ts";
import { type Command, CommandError } from "./command.ts";
import { EXAMPLE_ORG, findOrganization } from "./organizations.ts";

const ROLES: readonly Role[] = ["owner", "admin", "member"];

/** `user …` */
export const userCommands: Command[] = [
  {
    name: "user create",
    summary: "Create a user; prompts for the password, or reads it from stdin",
    arguments: { "<username>": "3 to 64 letters, digits and . _ @ + -" },
    options: {
      "--org <org-id>": "the organization to join (required)",
      "--role <role>": `${ROLES.join(", ")} (default: member)`,
    },
    example: `ada --org ${EXAMPLE_ORG} --role admin`,
    needs: "schema",
    async run({ args, options, storage, readPassword }) {
      const username = args[0] as string;
      const role = (options.role ?? "member") as Role;
      if (typeof options.org !== "string") throw new CommandError("invalid_org", "--org is required.");
      if (!ROLES.includes(role))
        throw new CommandError("invalid_role", `The role must be ${ROLES.join(", ")}.`);
      assertNoError("invalid_username", validateNewUsername(username));
      const { id: organizationId, name } = await findOrganization(storage, options.org);
      const password = await readPassword();
      assertNoError("invalid_password", validatePassword(password, { username, organizations: [name] }));
      const hash = await createPasswords().hash(password);
      const user = await storage.accounts.create(username, hash, OPERATOR, { organizationId, role });
      if (!user) throw new CommandError("username_taken", `The username ${username} is taken.`);
      return { user };
    },
  },
  {
    name: "user reset-password",
    summary: "Create a single-use password reset link that expires in one hour",
    arguments: { "<username>": "the user's name" },
    example: "ada",
    needs: "schema",
    async run({ args, storage, settings, note }) {
      const account = await storage.accounts.findByUsername(args[0] as string);
      if (!account) throw new CommandError("not_found", `User ${args[0]} not found.`);
      const token = await storage.accounts.createResetToken(account.id, RESET_LINK_MS);
      const { base } = publicUrlsOf(settings, settings.PORT);
      if (!settings.BASE_URL) note(`BASE_URL is not set, so the link starts with ${base}.`);
      return { url: resetUrl(base, token) };
    },
  },
  {
    name: "user reset-second-factors",
    summary:
      "Remove all passkeys, authenticator apps and recovery codes of a user, and end the user's sessions",
    arguments: { "<username>": "the user's name" },
    example: "ada",
    needs: "schema",
    async run({ args, storage }) {
      const account = await storage.accounts.findByUsername(args[0] as string);
      if (!account) throw new CommandError("not_found", `User ${args[0]} not found.`);
      await storage.secondFactors.reset(account.id, OPERATOR);
      return { user: { id: account.id, username: account.username } };
    },
  },
];

function assertNoError(code: string, message: string | undefined): void {
  if (message) throw new CommandError(code, message);
}
