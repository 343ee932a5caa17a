import type { DisabledAccount } from "../../../adapters/accounts/disable.ts";
import { ROLES, type Role } from "../../../resources/access/scopes.ts";
import { OPERATOR } from "../../../resources/events/types.ts";
import { validatePassword } from "../../credentials/password-rules.ts";
import { RESET_LINK_MS, resetUrl } from "../../credentials/reset-links.ts";
import {
  type Command,
  CommandError,
  commandsOn,
  EXAMPLE_ORG,
  eitherOf,
  findOrganization,
  found,
  missingOption,
  notFound,
  reasonOf,
  reasonOption,
} from "../execution/command.ts";

const userCommand = commandsOn({ "<username>": "the user's name" }, "ada", async ({ args, storage }) => {
  const { id, username } = found(await storage.accounts.findByUsername(args[0]), "User", args[0]);
  return { user: { id, username } };
});

export const userCommands: Command[] = [
  {
    name: "user create",
    summary: "Create a user",
    description: "Create a user; prompts for the password, or reads it from stdin",
    arguments: { "<username>": "3 to 64 letters, digits and . _ @ + -" },
    options: {
      "--org <org-id>": "the organization to join (required)",
      "--role <role>": `${eitherOf(ROLES)} (default: member)`,
    },
    example: `ada --org ${EXAMPLE_ORG} --role admin`,
    async run({ args: [username], options, storage, readPassword }) {
      const role = (options.role ?? "member") as Role;
      if (typeof options.org !== "string") throw missingOption("invalid_org", "--org <org-id>");
      if (!ROLES.includes(role))
        throw new CommandError("invalid_role", `The role must be ${eitherOf(ROLES)}.`);
      const { validateNewUsername } = await import("../../credentials/names.ts");
      assertNoError("invalid_username", validateNewUsername(username));
      const { id: organizationId, name } = await findOrganization(storage, options.org);
      const password = await readPassword();
      assertNoError("invalid_password", validatePassword(password, { username, organizations: [name] }));
      const { createPasswords } = await import("../../credentials/passwords.ts");
      const hash = await createPasswords().hash(password);
      const user = await storage.accounts.create(username, hash, OPERATOR, { organizationId, role });
      if (!user) throw new CommandError("username_taken", `The username ${username} is taken.`);
      return { user };
    },
  },
  userCommand({
    name: "user reset-password",
    summary: "Create a single-use password reset link",
    description: "Create a single-use password reset link that expires in one hour",
    async run({ user, storage, settings, urls: { base }, note, printFirst }) {
      const show = (token: string) => ({ url: resetUrl(base, token) });
      if (!settings.BASE_URL) note(`BASE_URL is not set, so the link starts with ${base}.`);
      const beforeCommit = (token: string) => printFirst(show(token));
      return show(await storage.accounts.createResetToken(user.id, RESET_LINK_MS, beforeCommit));
    },
  }),
  userCommand({
    name: "user reset-second-factors",
    summary: "Remove all second factors of a user",
    description:
      "Remove all passkeys, authenticator apps and recovery codes of a user, and end the user's sessions",
    irreversible: ({ args: [name] }) => `Remove all second factors of ${name}?`,
    async run({ user, storage }) {
      await storage.secondFactors.reset(user.id, OPERATOR);
      return { user };
    },
  }),
  userCommand({
    name: "user show",
    summary: "Show a user and their organizations",
    description: "Show a user's organizations and whether the account is disabled",
    isReadOnly: true,
    async run({ user, storage }) {
      const [disabled, organizations] = await Promise.all([
        storage.disabledAccounts.findDisabled(user.id),
        storage.organizations.listByUser(user.id),
      ]);
      return {
        user,
        disabled: disabled ? showDisabled(disabled) : null,
        organizations: organizations.map(({ id, name, plan, role }) => ({ id, name, plan, role })),
      };
    },
  }),
  userCommand({
    name: "user disable",
    summary: "Disable a user and sign them out",
    description: "Sign a user out everywhere, revoke their tokens and apps, and refuse further sign-ins",
    options: reasonOption("the audit log"),
    example: '--reason "Account taken over"',
    async run({ user, options, storage }) {
      const disabled = await storage.disabledAccounts.disable(user.id, reasonOf(options), OPERATOR);
      return { user, disabled: showDisabled(found(disabled, "User", user.username)) };
    },
  }),
  userCommand({
    name: "user enable",
    summary: "Let a disabled user sign in again",
    description: "Let a disabled user sign in again; ended sessions and revoked apps stay ended",
    async run({ user, storage }) {
      if (!(await storage.disabledAccounts.enable(user.id, OPERATOR))) throw notFound("User", user.username);
      return { user, disabled: null };
    },
  }),
  userCommand({
    name: "user sign-out",
    summary: "End all sessions of a user",
    options: { "--apps": "also revoke the apps that the user authorized" },
    example: "--apps",
    irreversible: ({ args: [name], options }) =>
      options.apps ? `Revoke all apps that ${name} authorized?` : undefined,
    async run({ user, options, storage }) {
      const apps = options.apps === true;
      return { user, ended: await storage.disabledAccounts.signOut(user.id, { apps }, OPERATOR) };
    },
  }),
  userCommand({
    name: "user delete",
    summary: "Delete a user",
    description: "Delete an account, and the organizations that have no other member; this can't be undone",
    irreversible: ({ args: [name] }) =>
      `Delete the account ${name}, and the organizations that have no other member?`,
    async run({ user, storage }) {
      const deletion = await storage.accountDeletions.deleteAccount(user.id, OPERATOR);
      if ("blockedBy" in deletion) throw lastOwner(user.username, deletion.blockedBy);
      return { deleted: user, deleted_organizations: deletion.deleted };
    },
  }),
];

function lastOwner(username: string, organizations: { id: string; name: string }[]): CommandError {
  const names = organizations.map(({ id, name }) => `${name} (${id})`).join(", ");
  return new CommandError(
    "last_owner",
    `${username} is the last owner of ${names}. Add another owner with "linkgate user create <username> --org <org-id> --role owner", or delete the organization with "linkgate org delete <org-id>".`,
  );
}

function showDisabled({ at, reason }: DisabledAccount) {
  return { at: new Date(at).toISOString(), reason };
}

function assertNoError(code: string, message: string | undefined): void {
  if (message) throw new CommandError(code, message);
}
