import { Readable } from "node:stream";
import { stringify } from "csv-stringify";
import type { Context } from "koa";
import { z } from "zod";
import type { AuditEntry, AuditFilter } from "../../adapters/audit.ts";
import { createCursors } from "../../resources/cursor.ts";
import { AUDIT_EVENTS, WEBHOOK_EVENTS } from "../../resources/events.ts";
import { validate } from "../../resources/validate.ts";
import { prefersHtml } from "../people/input.ts";
import { auditPage } from "../views/dashboard/audit.ts";
import { summaryOf } from "../views/dashboard/events.ts";
import { MANAGERS, membershipOf } from "./access.ts";
import { showPage } from "./answers.ts";
import { ORGANIZATION, type Subject } from "./subject.ts";

const PATH = `${ORGANIZATION}/audit`;
const MAX_PAGE = 100;
const CSV_PAGE = 500;
const DAY_MS = 24 * 60 * 60 * 1000;

/** What the log can be asked for, in the order of the list. */
const TYPES = [...AUDIT_EVENTS, ...WEBHOOK_EVENTS].filter(
  (type) => type !== "link.clicked" && type !== "webhook.test",
);

const DAY = /^\d{4}-\d{2}-\d{2}$/;
const moment = z.string().transform((text, context) => {
  const at = Date.parse(text);
  if (Number.isNaN(at)) context.addIssue("must be a day or a time, such as 2026-01-31");
  return { at, isDay: DAY.test(text) };
});
const query = z.object({
  type: z.enum(TYPES, { error: "is no event of the audit log" }).optional(),
  actor: z.string().max(255, { error: "is too long" }).optional(),
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

/** The audit log: what was done, by whom, from where. */
export const audit: Subject = (router, { storage, keys, allow }) => {
  const { audit, accounts } = storage;
  const cursors = createCursors(keys.signing);

  async function read(ctx: Context) {
    const asked = validate(query, withoutEmpty(ctx.query));
    const { type, actor, from, to } = asked;
    const filter: AuditFilter = {
      ...(type && { type }),
      ...(actor && { actor: await actorOf(actor) }),
      ...(from && { from: from.at }),
      // A day is meant as a whole.
      ...(to && { to: to.isDay ? to.at + DAY_MS : to.at }),
    };
    return { ...asked, filter };
  }

  /** People are known by name, everybody else by id. */
  async function actorOf(text: string): Promise<string> {
    return (await accounts.findByUsername(text))?.id ?? text;
  }

  const list = async (ctx: Context) => {
    const { id } = membershipOf(ctx);
    const { filter, limit, cursor, format } = await read(ctx);
    if (format === "csv") return exportCsv(ctx, filter);
    const bound = `${id} audit ${JSON.stringify(filter)}`;
    const before = cursor === undefined ? undefined : cursors.read(cursor, bound);
    const entries = await audit.list(id, filter, limit + 1, before);
    const page = entries.slice(0, limit);
    const nextCursor = entries.length > limit ? cursors.write(page.at(-1)?.id as string, bound) : null;
    if (!prefersHtml(ctx)) {
      ctx.body = { data: page.map(showEntry), next_cursor: nextCursor };
      return;
    }
    const body = auditPage({
      path: ctx.path,
      query: ctx.query as Record<string, string>,
      types: TYPES,
      entries: page,
      nextCursor,
    });
    const intro = "Every change of credentials, plan, members, consents and links, for a year.";
    showPage(ctx, { title: "Audit", intro, section: "audit" }, body);
  };

  async function exportCsv(ctx: Context, filter: AuditFilter) {
    ctx.type = "text/csv";
    ctx.attachment(`audit-${membershipOf(ctx).id}.csv`);
    // A spreadsheet would run what begins like a formula.
    const csv = stringify({ header: true, columns: CSV_COLUMNS, escape_formulas: true, bom: true });
    const entries = Readable.from(everything(membershipOf(ctx).id, filter));
    entries.on("error", (error) => csv.destroy(error));
    ctx.body = entries.pipe(csv);
  }

  async function* everything(id: string, filter: AuditFilter): AsyncGenerator<object> {
    let before: string | undefined;
    for (;;) {
      const entries = await audit.list(id, filter, CSV_PAGE, before);
      for (const { data, ...entry } of entries.map(showEntry)) yield { ...entry, data: JSON.stringify(data) };
      if (entries.length < CSV_PAGE) return;
      before = entries.at(-1)?.id;
    }
  }

  router.get(PATH, allow(...MANAGERS), list);
  router.get(`${PATH}.csv`, allow(...MANAGERS), async (ctx) => exportCsv(ctx, (await read(ctx)).filter));
};

const CSV_COLUMNS = "created_at actor actor_name via via_name address type summary subject data id".split(
  " ",
);

function showEntry(entry: AuditEntry) {
  const { id, type, at, actor, via, address, subject, data, names } = entry;
  return {
    id,
    type,
    created_at: new Date(at).toISOString(),
    actor,
    actor_name: names.get(actor) ?? null,
    via,
    via_name: via === null ? null : (names.get(via) ?? null),
    address,
    subject,
    summary: summaryOf(entry),
    data,
  };
}

/** A field of a form that was left empty asks for nothing. */
function withoutEmpty(fields: object): object {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ""));
}
