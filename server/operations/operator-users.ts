import { z } from "zod";
import { found, notFound, Problem } from "../../resources/http/problem.ts";
import { checkText } from "../../resources/http/validate.ts";
import { disabledToJson } from "../clients/client-view.ts";
import { validateNewUsername } from "../credentials/names.ts";
import { validatePassword } from "../credentials/password-rules.ts";
import { RESET_LINK_MS, resetUrl } from "../credentials/reset-links.ts";
import { roleSchema } from "./members.ts";
import { forOperator } from "./operation.ts";
import { refusal } from "./problem-codes.ts";
import { flag, reasonOption, reasonSchema } from "./schemas.ts";

export const createUser = forOperator({
  on: "nothing",
  summary: "Create a user",
  description: "Prompts for the password, or reads it from stdin.",
  input: z.strictObject({
    username: z.string().check(checkText(validateNewUsername)),
    org: z.string(),
    role: roleSchema.default("member"),
  }),
  refuses: ["not_found", "username_taken"],
  events: ["member.added"],
  command: {
    name: "user create",
    arguments: { username: "3 to 64 letters, digits and . _ @ + -" },
    options: {
      org: { syntax: "--org <org-id>", text: "the organization to join (required)" },
      role: { syntax: "--role <role>", text: "owner, admin or member (default: member)" },
    },
    example: "ada --org org_01JD9K2M4N6P8Q0R2S4T6V8W0X --role admin",
  },
  async run({ storage, actor, input: { username, org, role }, readPassword }) {
    const { id: organizationId, name } = found(await storage.organizations.find(org), `organization ${org}`);
    const password = await readPassword();
    const message = validatePassword(password, { username, organizations: [name] });
    if (message) throw new Problem(422, "invalid_password", message);
    // Here, because the help of the command needs no password hashing.
    const { createPasswords } = await import("../credentials/passwords.ts");
    const hash = await createPasswords().hash(password);
    const user = await storage.accounts.create(username, hash, actor, { organizationId, role });
    if (!user) throw refusal("username_taken");
    return { user };
  },
});

export const deleteUser = forOperator({
  on: "user",
  summary: "Delete a user",
  description: "Deletes the organizations that have no other member, too; this can't be undone.",
  refuses: ["last_owner"],
  events: ["member.removed", "organization.deleted"],
  command: {
    name: "user delete",
    question: (_, name) => `Delete the account ${name}, and the organizations that have no other member?`,
  },
  async run({ storage, actor, user }) {
    const deletion = await storage.accountDeletions.deleteAccount(user.id, actor);
    if (!("blockedBy" in deletion)) return { deleted: user, deleted_organizations: deletion.deleted };
    const names = deletion.blockedBy.map(({ id, name }) => `${name} (${id})`).join(", ");
    const detail = `${user.username} is the last owner of ${names}. Add another owner with "linkgate user create <username> --org <org-id> --role owner", or delete the organization with "linkgate org delete <org-id>".`;
    throw new Problem(409, "last_owner", detail);
  },
});

export const disableUser = forOperator({
  on: "user",
  summary: "Disable a user and sign them out",
  description: "Ends their sessions, revokes their tokens and apps, and refuses further sign-ins.",
  input: z.strictObject({ reason: reasonSchema }),
  events: ["member.disabled", "authorization.revoked"],
  command: {
    name: "user disable",
    options: { reason: reasonOption("the audit log") },
    example: '--reason "Account taken over"',
  },
  async run({ storage, actor, user, input }) {
    const disabled = await storage.disabledAccounts.disable(user.id, input.reason, actor);
    return { user, disabled: disabledToJson(found(disabled, "user")) };
  },
});

export const enableUser = forOperator({
  on: "user",
  summary: "Let a disabled user sign in again",
  description: "Ended sessions and revoked apps stay ended.",
  events: ["member.enabled"],
  command: { name: "user enable" },
  async run({ storage, actor, user }) {
    if (!(await storage.disabledAccounts.enable(user.id, actor))) throw notFound("user");
    return { user, disabled: null };
  },
});

export const resetPassword = forOperator({
  on: "user",
  summary: "Create a single-use password reset link",
  description: "The link expires in one hour.",
  events: ["member.reset_link_created"],
  command: { name: "user reset-password" },
  async run({ storage, settings, urls: { base }, user, note, beforeCommit }) {
    const linkOf = (token: string) => ({ url: resetUrl(base, token) });
    if (!settings.BASE_URL) note(`BASE_URL is not set, so the link starts with ${base}.`);
    const handOver = (token: string) => beforeCommit(linkOf(token));
    return linkOf(await storage.accounts.createResetToken(user.id, RESET_LINK_MS, handOver));
  },
});

export const resetSecondFactors = forOperator({
  on: "user",
  summary: "Remove all second factors of a user",
  description: "Removes passkeys, authenticator apps and recovery codes, and ends the user's sessions.",
  events: ["member.second_factors_reset"],
  command: {
    name: "user reset-second-factors",
    question: (_, name) => `Remove all second factors of ${name}?`,
  },
  async run({ storage, actor, user }) {
    await storage.secondFactors.reset(user.id, actor);
    return { user };
  },
});

export const revokeGrant = forOperator({
  on: "nothing",
  summary: "Revoke an app's access for one user",
  description: "The tokens of this grant stop working.",
  input: z.strictObject({ grant_id: z.string() }),
  refuses: ["not_found"],
  events: ["authorization.revoked"],
  command: {
    name: "grant revoke",
    arguments: {
      grant_id: 'ID of the grant, as the audit log shows it; after "--" if it starts with a hyphen',
    },
    example: "Zr3vYb0aQn5fTtK1Zr3vYb0aQn5fTtK1Zr3vYb0aQn5",
    question: () => "Revoke the app's access and all its tokens?",
  },
  async run({ storage, actor, input: { grant_id } }) {
    if (!(await storage.grants.revokeAny(grant_id, actor))) throw notFound(`grant ${grant_id}`);
    return { revoked: grant_id };
  },
});

export const showUser = forOperator({
  on: "user",
  summary: "Show a user and their organizations",
  description: "Shows whether the account is disabled, too.",
  command: { name: "user show" },
  async run({ storage, user }) {
    const [disabled, organizations] = await Promise.all([
      storage.disabledAccounts.findDisabled(user.id),
      storage.organizations.listByUser(user.id),
    ]);
    return {
      user,
      disabled: disabled ? disabledToJson(disabled) : null,
      organizations: organizations.map(({ id, name, plan, role }) => ({ id, name, plan, role })),
    };
  },
});

export const signOutUser = forOperator({
  on: "user",
  summary: "End all sessions of a user",
  input: z.strictObject({ apps: flag.default(false) }),
  events: ["member.signed_out"],
  command: {
    name: "user sign-out",
    options: { apps: "also revoke the apps that the user authorized" },
    example: "--apps",
    question: ({ apps }, name) => (apps ? `Revoke all apps that ${name} authorized?` : undefined),
  },
  async run({ storage, actor, user, input }) {
    return { user, ended: await storage.disabledAccounts.signOut(user.id, input, actor) };
  },
});
