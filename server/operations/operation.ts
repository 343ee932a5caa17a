import type { z } from "zod";
import type { NewPasskey } from "../../adapters/accounts/second-factors/passkeys.ts";
import type { Storage } from "../../adapters/index.ts";
import type { OwnedLink } from "../../adapters/links/disable.ts";
import type { AppPolicyCheck } from "../../adapters/oauth/app-policy.ts";
import type { Actor } from "../../resources/access/actor.ts";
import type { PublicUrls } from "../../resources/access/resource-metadata.ts";
import type { Role } from "../../resources/access/scopes.ts";
import type { EventType } from "../../resources/events/types.ts";
import type { Cursors } from "../../resources/http/pagination.ts";
import type { Plan } from "../../resources/plans.ts";
import type { Enqueue } from "../../resources/work-queue.ts";
import type { RegisteredClientIds } from "../clients/registered-client-id.ts";
import type { SignedInUser } from "../http/state.ts";
import type { Settings } from "../settings/config.ts";
import type { ManagementProblemCode } from "./problem-codes.ts";

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** A method and a path in the syntax of OpenAPI: `DELETE /dashboard/organizations/{id}/client/keys/{key_id}`. */
export type Address = `${Method} /${"dashboard" | "auth"}${string}`;

/** `…/{id}/client/keys/{key_id}` → `"id" | "key_id"` */
type ParametersOf<At extends string> = At extends `${string}{${infer Name}}${infer Rest}`
  ? Name | ParametersOf<Rest>
  : never;

/** What operations work with, in the server and in the administration command. */
export type Environment = {
  storage: Storage;
  settings: Settings;
  urls: PublicUrls;
  /** Verifies the IDs of clients that registered themselves; only in a server that accepts them. */
  registeredClientIds?: RegisteredClientIds | undefined;
  /** Whether an organization's policy allows an app; only in a server. */
  appPolicyCheck?: AppPolicyCheck;
  /** Signs positions in lists; only in a server. */
  cursors?: Cursors;
  /** Lets exports take turns; only in a server. */
  enqueueExport?: Enqueue;
};

/** What a command of the operator is about. Its first argument names it, unless it is `nothing` that exists. */
export type Subjects = {
  organization: Pick<OrganizationRequest, "organization">;
  user: { user: { id: string; username: string } };
  link: OwnedLink;
  nothing: object;
};

type OperatorRequest<Input> = Request<string, Input> & {
  actor: Actor;
  /** Prints a remark for a human reader. */
  note(text: string): void;
  /** Prompts for a new password, or reads it from stdin. */
  readPassword(): Promise<string>;
  /** Hands over a secret before the change is committed. If it throws, nothing is changed. */
  beforeCommit(output: object): Promise<void>;
};

type Request<At extends string, Input> = Environment & {
  params: Record<ParametersOf<At>, string>;
  input: Input;
};

export type OrganizationRequest<At extends string = string, Input = unknown> = Request<At, Input> & {
  organization: { id: string; name: string; plan: Plan };
  actor: Actor;
  /** The member who acts, with their role; absent if the operator runs a command. */
  member?: { user: SignedInUser; role: Role } | undefined;
  /** The sign-in of that member's request. */
  signIn?: Pick<CurrentSignIn, "requireRecent">;
  /** Hands over a secret before the change is committed. If it throws, nothing is changed. */
  beforeCommit?(output: object): Promise<void>;
};

type AccountRequest<At extends string = string, Input = unknown> = Request<At, Input> & {
  user: SignedInUser;
  signIn: CurrentSignIn;
};

/** What an operation on the account may do with the sign-in of its request: a session, or a first-party token. */
export type CurrentSignIn = {
  /** Throws Problem 403 unless the user signed in within the last ten minutes. */
  requireRecent(): void;
  /** Counts wrong guesses as the sign-in page does. Throws Problem 403, 429 or 503. */
  isPassword(password: string): Promise<boolean>;
  /** Throws Problem 503 if too many passwords are being hashed. */
  hashPassword(password: string): Promise<string>;
  /** Counts guesses of a code until `verify` resolves. Throws Problem 429, or what `verify` throws. */
  limitGuesses<Result>(verify: () => Promise<Result>): Promise<Result>;
  /** Resolves to undefined if the authenticator's response isn't one to this session, or is too late. */
  verifyPasskey(response: string): Promise<Omit<NewPasskey, "name"> | undefined>;
  /** Gives a session a new ID, with a second factor that was just proved. */
  renew(factor?: { method: "totp" } | { method: "passkey"; synced: boolean }): Promise<void>;
  /** Removes a second factor from a session, which gets a new ID. */
  forgetFactor(method: "totp" | "passkey"): Promise<void>;
  /** Keeps later sign-ins from this device from being reported. */
  rememberDevice(): Promise<void>;
  end(): Promise<void>;
};

/** The file that an operation without `output` returns. */
export type CsvFile = { name: string; parts: AsyncIterable<string> };

/** How the administration command runs an operation. Its first argument names the organization, or another subject. */
export type CommandDeclaration = {
  name: string;
  /** Descriptions of parameters and fields that are arguments, in their order. */
  arguments?: Record<string, string | Word>;
  /** Descriptions of fields that are options. A string describes a flag. */
  options?: Record<string, string | Word>;
  /** What follows the subject in the example of the help. */
  example?: string;
  /** Returns the question about an input that can't be undone, to which the name of the subject is added. */
  question?(input: Record<string, unknown>, subject: string): string | undefined;
  /** Returns what is printed, if that isn't the output, or the organization with what was typed. */
  result?(request: { params: Record<string, string>; output: unknown; organization: object }): object;
};

/** An argument or option whose syntax isn't that of its field, such as `--overlap <time>`. */
export type Word = {
  syntax: string;
  text: string;
  /** Converts what was typed: several words if it can be repeated. */
  parse?(words: string[]): unknown;
  /** Whether it names a file, whose text is the value. */
  isFile?: true;
};

/** It is exported under its operationId: a verb and a noun, unique. */
type Declaration<At extends Address, Input extends z.ZodType, Output> = {
  at: At;
  summary: string;
  description?: string;
  /** Whether the user must have signed in within the last ten minutes. */
  needsRecentSignIn?: boolean;
  /** The schema of the body, if it has one. */
  input?: Input | ((environment: Pick<Environment, "settings" | "urls">) => Input);
  /** The schema of the query, in place of a body. */
  query?: z.ZodObject & Input;
  /** The schema of the response; without one, the status is 204. */
  output?: Output;
  /** What the response contains, if it is a CSV file. */
  csv?: string;
  /** By default 200. */
  status?: 201 | 202;
  /** The name of the file as which browsers save the response. */
  file?: string;
  /** The field of the response that is a secret: a repeated request with an idempotency key doesn't get it again. */
  shownOnce?: string;
  /** Error codes besides those of the sign-in, the role and the input. */
  refuses?: readonly ManagementProblemCode[];
  /** What is recorded in the audit log. */
  events?: readonly EventType[];
  /** What the page says then: the value of `done` in its URL → the sentence. */
  done?: Record<string, string>;
  /** Returns which of several sentences of `done` applies, if one does. */
  outcome?(input: z.output<Input>, output: OutputOf<Output>): string | undefined;
  /** Returns what stands for `{}` in the sentence. */
  about?(output: OutputOf<Output>): string;
};

type OutputOf<Output> = Output extends z.ZodType ? z.input<Output> : unknown;

/** An operation for everyone. It has no `run`, because the server needs the cookies and the address of its request. */
export type OpenOperation<Input extends z.ZodType, Output extends z.ZodType> = Omit<
  Declaration<Address, z.ZodType, undefined>,
  "input" | "output" | "outcome" | "about"
> & { input: Input; output: Output };

/** Any operation, where its types don't matter. */
export type Operation = Omit<Declaration<Address, z.ZodType, z.ZodType | undefined>, "outcome" | "about"> & {
  roles?: readonly Role[];
  command?: CommandDeclaration;
  outcome?(input: never, output: never): string | undefined;
  about?(output: never): string;
  run?(request: never): Promise<unknown>;
};

/** What only the operator does, with a command. Without events, it only reads. */
export type OperatorOperation = Pick<Operation, "summary" | "description" | "refuses" | "events" | "run"> & {
  at?: never;
  on: keyof Subjects;
  input?: z.ZodType;
  command: CommandDeclaration;
};

export type Result<O extends Operation> = Awaited<ReturnType<NonNullable<O["run"]>>>;

export type OrganizationOperation<
  At extends Address,
  Input extends z.ZodType,
  Output,
  More = object,
> = Declaration<At, Input, Output> & {
  /** Who may run it; by default every member. */
  roles?: readonly Role[];
  command?: CommandDeclaration;
  run(request: OrganizationRequest<At, z.output<Input>> & More): Promise<OutputOf<Output>>;
};

/** Declares an operation on the organization that the path names. */
export function onOrganization<
  const At extends Address,
  Input extends z.ZodType = z.ZodObject,
  Output extends z.ZodType | undefined = undefined,
>(operation: OrganizationOperation<At, Input, Output>) {
  return operation;
}

/** Declares a command of the operator that no member has. It has no address. */
export function forOperator<const On extends keyof Subjects, Input extends z.ZodType = z.ZodObject>(
  operation: Omit<OperatorOperation, "on" | "input" | "run"> & {
    on: On;
    input?: Input;
    /** Returns what the command prints. */
    run(request: OperatorRequest<z.output<Input>> & Subjects[On]): Promise<object>;
  },
) {
  return operation;
}

/** Declares an operation of a signed-in user on their own account. */
export function onAccount<
  const At extends Address,
  Input extends z.ZodType = z.ZodObject,
  Output extends z.ZodType | undefined = undefined,
>(
  operation: Declaration<At, Input, Output> & {
    run(request: AccountRequest<At, z.output<Input>>): Promise<OutputOf<Output>>;
  },
) {
  return operation;
}

export function forEveryone<Input extends z.ZodType, Output extends z.ZodType>(
  operation: OpenOperation<Input, Output>,
): OpenOperation<Input, Output> {
  return operation;
}

export function methodOf({ at }: Pick<Operation, "at">): Method {
  return at.slice(0, at.indexOf(" ")) as Method;
}

/** Returns the path in the syntax of OpenAPI. */
export function pathOf({ at }: Pick<Operation, "at">): string {
  return at.slice(at.indexOf(" ") + 1);
}

export function inputSchemaOf(
  { input }: Pick<Operation, "input">,
  environment: Pick<Environment, "settings" | "urls">,
): z.ZodType | undefined {
  return typeof input === "function" ? input(environment) : input;
}

/** Whether a repeated request with the same idempotency key gets the first response again. */
export function isIdempotent(operation: Pick<Operation, "at">): boolean {
  return methodOf(operation) === "POST" && operation.at.includes(" /dashboard/organizations/{id}");
}
