import { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Context } from "koa";
import { z } from "zod";
import { invalidField, validate } from "../../../resources/http/validate.ts";
import type { LinkFile } from "../../../resources/links/import/formats.ts";
import { type ImportReport, type RowResult, reportToJson } from "../../../resources/links/import/index.ts";
import { readLinkFile } from "../../../resources/links/import/read-file.ts";
import { createWorkQueue } from "../../../resources/work-queue.ts";
import { LINK_FILE_MAX, prefersHtml } from "../../http/request-body.ts";
import { badge, CSRF_FIELD, field, linkButton } from "../../ui/controls.ts";
import { type Html, html } from "../../ui/html.ts";
import { type Columns, table } from "../../ui/table.ts";
import { pluralize } from "../../ui/text.ts";
import { actorOf, pathTo } from "../access.ts";
import { addForm, type FieldErrors, formFieldsOf, splitFieldErrors } from "../forms.ts";
import { sendJson, showPage } from "../responses.ts";
import { ORGANIZATION, type RouteModule } from "../route.ts";

const PATH = `${ORGANIZATION}/links/import`;
const ROWS_MAX = 10_000;
// More would take a browser long to show. The command lists all refused rows.
const SHOWN_ROWS = 500;
// Its markup takes a millisecond or two. Other requests are served between two parts.
const PART = 256 * 1024;
const USE_COMMAND = "For larger files, use the command “linkgate import”";
const TOO_MANY = "Your organization has too many imports in progress. Try again when one has finished.";
const INTRO = "Bring your links from another service, with their slugs, tags, dates and clicks so far.";

const inputSchema = z.strictObject({
  file: z.unknown().refine((value) => typeof value === "string" || Buffer.isBuffer(value), {
    error: "must be a file",
  }) as z.ZodType<string | Buffer>,
  dry_run: z
    .union([z.boolean(), z.enum(["true", "false"])], { error: "must be true or false" })
    .default(false),
});

export const linkImport: RouteModule = (router, { services: { importLinks }, allow }) => {
  const enqueue = createWorkQueue({ maxWaiting: 1, tooMany: TOO_MANY, pauses: false });
  addForm(router, {
    path: PATH,
    access: [allow()],
    section: "links",
    render(ctx, problem) {
      const { errors, ...error } = splitFieldErrors(problem);
      const body = uploadForm(pathTo(ctx, "links"), errors);
      return { title: "Import links", intro: INTRO, ...error, body };
    },
    async change(ctx) {
      const { file, dry_run } = validate(inputSchema, await formFieldsOf(ctx));
      const isTrial = String(dry_run) === "true";
      const bytes = bytesOf(file);
      const results: RowResult[] = [];
      const caller = actorOf(ctx);
      const report = await enqueue(caller.organizationId, async () =>
        importLinks(caller, await readFew(bytes), { isTrial, onRow: (result) => void results.push(result) }),
      );
      if (prefersHtml(ctx)) await showResults(ctx, { report, results, isTrial, text: bytes.toString() });
      else sendJson(ctx, { dry_run: isTrial, ...reportToJson(report), results });
    },
  });
};

/** Returns the content of a file, or of a field that has it as text. @throws Problem 422 */
function bytesOf(file: string | Buffer): Buffer {
  if (typeof file === "string") return Buffer.from(file);
  const limit = `${LINK_FILE_MAX / 2 ** 20} MB`;
  if (file.length > LINK_FILE_MAX) throw invalidField("file", `must be at most ${limit}. ${USE_COMMAND}`);
  return file;
}

/** Reads all rows first, so a file that can't be read to its end imports nothing. @throws Problem 422 */
async function readFew(bytes: Buffer): Promise<LinkFile> {
  const { rows, ...file } = await readLinkFile(() => Readable.from([bytes]), checkRows);
  return { ...file, rows: Readable.from(await Array.fromAsync(rows)) };
}

function checkRows(count: number): void {
  if (count > ROWS_MAX)
    throw invalidField("file", `must have at most ${ROWS_MAX.toLocaleString("en")} rows. ${USE_COMMAND}`);
}

function uploadForm(path: string, errors: FieldErrors): Html {
  return html`<form method="post" action="${path}/import" enctype="multipart/form-data" class="panel stack">${CSRF_FIELD}
<input type="hidden" name="dry_run" value="true">
${field({
  name: "file",
  label: "File",
  type: "file",
  isWide: true,
  error: errors.file,
  hint: `CSV or JSON of Bitly, Dub, Shlink, YOURLS, Kutt, Short.io or linkgate, or CSV with the columns url, slug, title, tags, created_at and clicks. Up to ${LINK_FILE_MAX / 2 ** 20} MB and ${ROWS_MAX.toLocaleString("en")} rows. ${USE_COMMAND}.`,
  attributes: html`required accept=".csv,.json,.txt,text/csv,application/json"`,
})}
<div class="actions"><button type="submit">Preview</button>${linkButton(path, "Cancel", "quiet")}</div>
</form>`;
}

type Results = { report: ImportReport; results: RowResult[]; isTrial: boolean; text: string };

async function showResults(ctx: Context, { report, results, isTrial, text }: Results): Promise<void> {
  const path = pathTo(ctx, "links");
  const { imported, refused, left, stopped } = report;
  const skipped = refused > 0 && ` ${pluralize(refused, "row")} skipped.`;
  const canImport = isTrial && imported > 0;
  const next = canImport ? await confirmForm(path, imported, text) : linkButton(path, "Show links");
  showPage(ctx, {
    section: "links",
    title: isTrial ? "Preview of the import" : "Import finished",
    intro: isTrial ? `Nothing is imported yet. Format: ${report.format}.` : `Format: ${report.format}.`,
    body: html`${!isTrial && html`<p class="notice" role="status">${pluralize(imported, "link")} imported.${skipped}</p>`}
${stopped && html`<p class="alert bad">${stopped.message} ${pluralize(left, "row")} ${left === 1 ? "is" : "are"} left. Import the same file again when there is room.</p>`}
<div class="panel">${summary(report, isTrial)}
<div class="actions">${next}${linkButton(`${path}/import`, "Choose another file", "quiet")}</div></div>
${resultTable(results, isTrial)}`,
  });
}

function summary({ rows, imported, skipped, refused }: ImportReport, isTrial: boolean): Html {
  const number = (value: number) => value.toLocaleString("en");
  return html`<dl class="facts">
<dt>Rows</dt><dd>${number(rows)}</dd>
<dt>${isTrial ? "Ready" : "Imported"}</dt><dd>${number(imported)}</dd>
<dt>Already imported</dt><dd>${number(skipped)}</dd>
<dt>Skipped</dt><dd>${number(refused)}</dd>
</dl>`;
}

/** Sends the same file again, as a text, so nothing has to be kept meanwhile. */
async function confirmForm(path: string, count: number, text: string): Promise<Html> {
  const parts: Html[] = [];
  for (let start = 0; start < text.length; start += PART) {
    parts.push(html`${text.slice(start, start + PART)}`);
    await nextTurn();
  }
  return html`<form method="post" action="${path}/import" enctype="multipart/form-data" class="inline">${CSRF_FIELD}
<input type="hidden" name="dry_run" value="false"><input type="hidden" name="file" value="${parts}">
<button type="submit">Import ${pluralize(count, "link")}</button></form>`;
}

/** What the table says of a row, in the order in which rows are shown. */
const RESULTS = {
  refused: { name: "skipped", look: "bad" },
  left: { name: "no room", look: "warn" },
  skipped: { name: "already imported", look: "neutral" },
  imported: { name: "imported", look: "good" },
} as const satisfies Record<RowResult["result"], object>;

function resultTable(results: RowResult[], isTrial: boolean): Html {
  const sorted = Object.keys(RESULTS).flatMap((name) => results.filter(({ result }) => result === name));
  const hidden = results.length - SHOWN_ROWS;
  const columns: Columns<RowResult> = {
    Row: ({ row }) => row.toLocaleString("en"),
    Slug: ({ slug }) => slug,
    Destination: ({ url, title }) =>
      html`<span class="long">${title && html`<strong>${title}</strong> `}${url}</span>`,
    Result: ({ result, reason }) => {
      const { name, look } = RESULTS[result];
      if (result === "refused") return html`${badge(name, look)} ${withSubjects(reason)}`;
      return badge(result === "imported" && isTrial ? "ready" : name, look);
    },
  };
  return html`${table("Rows of the file", columns, sorted.slice(0, SHOWN_ROWS))}
${hidden > 0 && html`<p class="soft">${pluralize(hidden, "row")} more ${hidden === 1 ? "is" : "are"} not shown.</p>`}`;
}

// As the help of the page calls the columns, where a field has another name.
const SUBJECTS: Record<string, string> = {
  url: "URL",
  tags: "tag",
  fallback_url: "fallback URL",
  external_id: "external ID",
  expires_at: "expiry",
  max_clicks: "click limit",
  created_at: "creation date",
  last_clicked_at: "date of the last click",
  bot_clicks: "number of clicks from bots",
  clicks: "number of clicks",
  redirect_type: "redirect type",
  forward_query: "choice whether visitors’ parameters are added",
  forward_path: "choice whether visitors’ paths are added",
  "card.title": "card title",
  "card.description": "card description",
  "card.image_url": "card image URL",
};

/** “url must be …” → “The URL must be …” */
function withSubjects(reason = ""): string {
  const subject = /(?<=^|\. )([a-z_]+(?:\.[a-z_]+)?)(?:\.\d+)? (?=must |is )/g;
  return reason.replaceAll(subject, (_, field) => `The ${SUBJECTS[field] ?? field} `);
}
