import type { DisabledAccount } from "../../adapters/accounts/switches.ts";
import type { Storage } from "../../adapters/index.ts";
import { OPERATOR } from "../../resources/events/types.ts";
import { type Command, CommandError } from "./command.ts";
import { reasonOf, reasonOption } from "./reason.ts";

const USERNAME = { "<username>": "the user's name" };

/** `user show`, `user disable`, `user enable`, `user sign-out` and `user delete` */
export const userAccessCommands: Command[] = [
  {
    name: "user show",
    summary: "Show a user's organizations and whether the account is disabled",
    arguments: USERNAME,
    example: "ada",
    isReadOnly: true,
    needs: "schema",
    async run({ args, storage }) {
      const user = await findUser(storage, args[0]);
      const [disabled, organizations] = await Promise.all([
        storage.accountSwitches.findDisabled(user.id),
        storage.organizations.listByUser(user.id),
      ]);
      return {
        user,
        disabled: disabled ? showDisabled(disabled) : null,
        organizations: organizations.map(({ id, name, plan, role }) => ({ id, name, plan, role })),
      };
    },
  },
  {
    name: "user disable",
    summary: "Sign a user out everywhere, revoke their tokens and apps, and refuse further sign-ins",
    arguments: USERNAME,
    options: reasonOption("the audit log"),
    example: 'ada --reason "Account taken over"',
    needs: "schema",
    async run({ args, options, storage }) {
      const reason = reasonOf(options);
      const user = await findUser(storage, args[0]);
      const disabled = await storage.accountSwitches.disable(user.id, reason, OPERATOR);
      if (!disabled) throw userNotFound(args[0]);
      return { user, disabled: showDisabled(disabled) };
    },
  },
  {
    name: "user enable",
    summary: "Let a disabled user sign in again; ended sessions and revoked apps stay ended",
    arguments: USERNAME,
    example: "ada",
    needs: "schema",
    async run({ args, storage }) {
      const user = await findUser(storage, args[0]);
      if (!(await storage.accountSwitches.enable(user.id, OPERATOR))) throw userNotFound(args[0]);
      return { user, disabled: null };
    },
  },
  {
    name: "user sign-out",
    summary: "End all sessions of a user",
    arguments: USERNAME,
    options: { "--apps": "also revoke the apps that the user authorized" },
    example: "ada --apps",
    needs: "schema",
    async run({ args, options, storage }) {
      const user = await findUser(storage, args[0]);
      const apps = options.apps === true;
      return { user, ended: await storage.accountSwitches.signOut(user.id, { apps }, OPERATOR) };
    },
  },
  {
    name: "user delete",
    summary: "Delete an account, and the organizations that have no other member; this can't be undone",
    arguments: USERNAME,
    example: "ada",
    needs: "schema",
    async run({ args, storage }) {
      const user = await findUser(storage, args[0]);
      const deletion = await storage.accountDeletions.deleteAccount(user.id, OPERATOR);
      if ("blockedBy" in deletion) throw lastOwner(user.username, deletion.blockedBy);
      return { deleted: user, deleted_organizations: deletion.deleted };
    },
  },
];

/** Returns a user. @throws CommandError `not_found` */
async function findUser(storage: Storage, username = ""): Promise<{ id: string; username: string }> {
  const account = await storage.accounts.findByUsername(username);
  if (!account) throw userNotFound(username);
  return { id: account.id, username: account.username };
}

function userNotFound(username: string | undefined): CommandError {
  return new CommandError("not_found", `User ${username} not found.`);
}

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
