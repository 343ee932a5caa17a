import { setImmediate as nextTurn } from "node:timers/promises";
import type { z } from "zod";
import type { Caller } from "../../access/actor.ts";
import { Problem } from "../../http/problem.ts";
import { hasAtMost } from "../../http/text.ts";
import { validate } from "../../http/validate.ts";
import { toQuotaProblem } from "../../plans.ts";
import type { Enqueue } from "../../work-queue.ts";
import { assertAllowedSlug, conflictProblem } from "../create.ts";
import { HOST_MAX, type ReservedNames, randomSlug, slugOf, toHost } from "../rules.ts";
import { linkSchemas, toFields } from "../schema.ts";
import {
  type ImportedLink,
  type ImportOutcome,
  LINK_DEFAULTS,
  type LinkImport,
  type LinkStore,
} from "../types.ts";
import { refusalOf, toInput } from "./convert.ts";
import type { Fields, FileRow, Format, LinkFile } from "./formats.ts";

/** Of a row: `skipped` is a link that exists with this slug and URL, `left` came after a quota was reached. */
export type RowResult = {
  row: number;
  result: "imported" | "skipped" | "refused" | "left";
  reason?: string;
  url: string;
  slug: string;
  title: string;
};

export type ImportReport = {
  format: string;
  rows: number;
  imported: number;
  skipped: number;
  refused: number;
  left: number;
  /** Why rows are left. */
  stopped?: Problem;
};

export function reportToJson({ stopped, ...report }: ImportReport) {
  return { ...report, ...(stopped && { stopped: { code: stopped.code, message: stopped.message } }) };
}

type ImportOptions = {
  /** Checks every row, and stores nothing. */
  isTrial?: boolean;
  /** Called in the order of the rows. Reading waits for it. */
  onRow?(result: RowResult, row: FileRow): void | Promise<void>;
  /** Called after each batch with how many rows are done, and the last of them. */
  onBatch?(rows: number, last: FileRow): void;
};

// They take some milliseconds to validate. Other requests are served between two turns.
const ROWS_PER_TURN = 50;
// If this many slugs of a URL are taken, the cause is something other than chance: those that follow are random.
const MAX_DERIVED_SLUGS = 6;
const MAX_SLUGS = 12;

/** A valid row, waiting for its batch. A slug that the file lacks follows from the URL and the attempt. */
type Pending = { link: ImportedLink; attempt: number | undefined };
type Domains = {
  list(organizationId: string): Promise<{ host: string; verified: boolean; default: boolean }[]>;
};
type Target = { organizationId: string; place(domain: unknown): string | null };
type Checked = { row: FileRow; input: Fields; pending?: Pending; refusal?: string };

/**
 * Creates the import. Repeating one changes nothing twice, because links are recognized by their slug and URL.
 * @param batchSize how many links a transaction stores. On SQLite, it holds the process for some 30 ms for 500 links.
 */
export function createImportLinks(
  { links: store, domains }: { links: LinkStore; domains: Domains },
  reserved: ReservedNames,
  enqueue: Enqueue,
  batchSize: number,
) {
  const schema = linkSchemas(reserved).imported;

  /** Links of a domain that the organization has keep it. Others get the default. */
  async function createPlace(organizationId: string) {
    const verified = (await domains.list(organizationId)).filter(({ verified }) => verified);
    const hosts = new Set([reserved.shortHost, ...verified.map(({ host }) => host)]);
    const byDefault = verified.find((domain) => domain.default)?.host ?? null;
    return (given: unknown): string | null => {
      const host = typeof given === "string" && hasAtMost(HOST_MAX, given) ? toHost(given) : undefined;
      return host !== undefined && hosts.has(host) ? host : byDefault;
    };
  }

  function check(row: FileRow, format: Format, { organizationId, place }: Target): Checked {
    const { input: read, ...converted } = toInput(row.fields, format);
    const input: Fields = { ...read, domain: place(read.domain) };
    const refusal = row.refusal ?? refusalOf(row.fields, format) ?? converted.refusal;
    if (refusal) return { row, input, refusal };
    const attempt = input.slug === undefined ? 0 : undefined;
    const slug = input.slug ?? derivedSlug(organizationId, input.url, 0);
    try {
      const link = toLink(validate(schema, { ...input, slug }));
      assertAllowedSlug(link, reserved);
      return { row, input, pending: { link, attempt } };
    } catch (error) {
      if (error instanceof Problem) return { row, input, refusal: error.message };
      throw error;
    }
  }

  return async function importLinks(
    { organizationId, actor }: Caller,
    { format, rows }: LinkFile,
    { isTrial = false, onRow, onBatch }: ImportOptions = {},
  ): Promise<ImportReport> {
    const target = { organizationId, place: await createPlace(organizationId) };
    const { add } = store.beginImport(organizationId, actor, format.name, isTrial);
    const addEnqueued: Add = (links) => enqueue(organizationId, () => add(links));
    const counts = { rows: 0, imported: 0, skipped: 0, refused: 0, left: 0 };
    const report: ImportReport = { format: format.name, ...counts };

    async function finish(batch: Checked[]) {
      const pending = report.stopped ? [] : batch.flatMap(({ pending }) => pending ?? []);
      const { outcomes, exceeded } = await addAll(pending, organizationId, addEnqueued);
      if (exceeded) report.stopped = toQuotaProblem(exceeded) as Problem;
      for (const { row, input, pending, refusal } of batch) {
        const result = refusal
          ? { result: "refused" as const, reason: refusal }
          : resultOf(outcomes.get(pending as Pending));
        report.rows++;
        report[result.result]++;
        const { url, slug, title } = input;
        const texts = { url: textOf(url), slug: textOf(slug), title: textOf(title) };
        await onRow?.({ row: row.number, ...result, ...texts }, row);
      }
      const last = batch.at(-1);
      if (last) onBatch?.(report.rows, last.row);
    }

    let batch: Checked[] = [];
    for await (const row of rows) {
      batch.push(check(row, format, target));
      if (batch.length % ROWS_PER_TURN === 0) await nextTurn();
      if (batch.length < batchSize) continue;
      await finish(batch);
      batch = [];
    }
    await finish(batch);
    return report;
  };
}

type Add = LinkImport["add"];

/** Adds links, and those whose derived slug is taken again under another one. */
async function addAll(pending: Pending[], organizationId: string, add: Add) {
  const outcomes = new Map<Pending, ImportOutcome>();
  for (let waiting = pending; waiting.length > 0; ) {
    const result = await add(waiting.map(({ link }) => link));
    const again: Pending[] = [];
    for (const [index, outcome] of result.outcomes.entries()) {
      const one = waiting[index] as Pending;
      const isTaken = typeof outcome === "object" && "taken" in outcome && outcome.taken === "slug";
      if (isTaken && deriveNext(one, organizationId)) again.push(one);
      else outcomes.set(one, outcome);
    }
    if (result.exceeded) return { outcomes, exceeded: result.exceeded };
    waiting = again;
  }
  return { outcomes };
}

/** Returns false if the file has the slug. */
function deriveNext(pending: Pending, organizationId: string): boolean {
  const { link, attempt } = pending;
  if (attempt === undefined || attempt + 1 === MAX_SLUGS) return false;
  pending.attempt = attempt + 1;
  const isDerived = pending.attempt < MAX_DERIVED_SLUGS;
  link.slug = isDerived ? derivedSlug(organizationId, link.url, pending.attempt) : randomSlug();
  return true;
}

function derivedSlug(organizationId: string, url: unknown, attempt: number): string {
  return slugOf(`${organizationId} ${url} ${attempt}`);
}

/** The fields of a link that only an import sets are converted like the others. */
function toLink(input: z.output<ReturnType<typeof linkSchemas>["imported"]>): ImportedLink {
  const times = { createdAt: Date.now(), lastClickedAt: null };
  return { ...LINK_DEFAULTS, clicks: 0, botClicks: 0, ...times, ...toFields(input) } as ImportedLink;
}

function resultOf(outcome: ImportOutcome | undefined): Pick<RowResult, "result" | "reason"> {
  if (outcome === undefined) return { result: "left" };
  if (outcome === "imported") return { result: "imported" };
  if (outcome === "exists") return { result: "skipped", reason: "The link already exists." };
  return { result: "refused", reason: conflictProblem(outcome).message };
}

function textOf(value: unknown): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}
