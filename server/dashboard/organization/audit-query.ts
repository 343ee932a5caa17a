import { z } from "zod";
import type { AuditFilter } from "../../../adapters/events/audit-log.ts";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../../resources/events/schemas.ts";
import { validate } from "../../../resources/http/validate.ts";
import type { AuditedType } from "./audit-event-names.ts";

const MAX_PAGE = 100;
const DAY_MS = 24 * 60 * 60 * 1000;

const AUDITED_TYPES = [...AUDIT_EVENTS, ...WEBHOOK_EVENTS].filter(
  (type): type is AuditedType => type !== "link.clicked" && type !== "webhook.test",
);

/** What the log can be narrowed to: a name and the test of an event type. */
const CATEGORIES = {
  changes: { label: "Everything except sign-ins", contains: (type: string) => !isSignIn(type) },
  sign_ins: { label: "Sign-ins and sessions", contains: isSignIn },
  members: {
    label: "Members and invitations",
    contains: (type: string) => /^(member|invitation)\./.test(type) && !isSignIn(type),
  },
  access: {
    label: "Apps, clients and tokens",
    contains: (type: string) => /^(app|authorization|token|client|trust_rule)\./.test(type),
  },
  links: { label: "Links", contains: (type: string) => /^links?\./.test(type) },
  webhooks: { label: "Webhooks", contains: (type: string) => type.startsWith("webhook.") },
  organization: {
    label: "Organization and plan",
    contains: (type: string) => /^(organization|plan|enterprise_authorization|audit_log)\./.test(type),
  },
} satisfies Record<string, { label: string; contains: (type: string) => boolean }>;
type Category = keyof typeof CATEGORIES;
const CATEGORY_NAMES = Object.keys(CATEGORIES) as Category[];

export const CATEGORY_OPTIONS = CATEGORY_NAMES.map((name) => [name, CATEGORIES[name].label] as const);

/** The event types in groups: the label of a category → the types that it contains. */
export const EVENT_GROUPS: readonly (readonly [label: string, types: AuditedType[]])[] = Object.values(
  CATEGORIES,
)
  .filter((category) => category !== CATEGORIES.changes)
  .map(({ label, contains }) => [label, AUDITED_TYPES.filter(contains)]);

/** What was changed, without who signed in. */
export const CHANGE_TYPES: readonly string[] = AUDITED_TYPES.filter((type) => !isSignIn(type));

function isSignIn(type: string): boolean {
  return /^member\.(sign|session|reauth|logged|second_factor_failed)/.test(type);
}

const DATE = /^\d{4}-\d{2}-\d{2}$/;
const moment = z.string().transform((text, context) => {
  const at = Date.parse(text);
  if (Number.isNaN(at)) context.addIssue("must be a date or an RFC 3339 time, for example 2026-01-31");
  return { at, isDate: DATE.test(text) };
});
const idText = z.string().max(255, { error: "must be at most 255 characters" });
const querySchema = z.object({
  type: z.enum(AUDITED_TYPES, { error: "must be an event type of the audit log" }).optional(),
  category: z.enum(CATEGORY_NAMES, { error: `must be ${CATEGORY_NAMES.join(", ")}` }).optional(),
  actor: idText.optional(),
  client_id: idText.optional(),
  from: moment.optional(),
  to: moment.optional(),
  limit: z.coerce
    .number()
    .int({ error: "must be a whole number" })
    .min(1, { error: "must be at least 1" })
    .max(MAX_PAGE, { error: `must be at most ${MAX_PAGE}` })
    .default(25),
  cursor: z.string().optional(),
  format: z.enum(["json", "csv"], { error: "must be json or csv" }).optional(),
});

export type AuditQuery = Awaited<ReturnType<typeof readAuditQuery>>;

/** `findActorId` resolves the username or ID of an actor. Throws Problem 422. */
export async function readAuditQuery(input: object, findActorId: (actor: string) => Promise<string>) {
  const {
    type,
    category,
    actor,
    client_id: client,
    from,
    to,
    limit,
    cursor,
    format,
  } = validate(querySchema, withoutEmptyFields(input));
  const filter: AuditFilter = {
    ...((type || category) && { types: typesOf(type, category) }),
    ...(actor && { actor: await findActorId(actor) }),
    ...(client && { client }),
    ...(from && { from: from.at }),
    // A date includes its whole day.
    ...(to && { to: to.isDate ? to.at + DAY_MS : to.at }),
  };
  return { filter, limit, cursor, format };
}

function typesOf(type: string | undefined, category: Category | undefined): string[] {
  return AUDITED_TYPES.filter(
    (one) => (!type || one === type) && (!category || CATEGORIES[category].contains(one)),
  );
}

function withoutEmptyFields(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}
