import { Readable } from "node:stream";
import { CsvError, parse } from "csv-parse";
import { invalidField } from "../../http/validate.ts";
import { type Fields, type Format, formatOf, plainName } from "./formats.ts";
import { withoutEscape, withoutNull } from "./values.ts";

/** A row, by plain names of its columns. `number` is that of a spreadsheet for CSV, and counts from 1 for JSON. */
export type FileRow = {
  number: number;
  fields: Fields;
  /** As the file has them, in the order of `LinkFile.columns`. */
  cells: readonly unknown[];
  /** How many bytes of the file end with this row; an estimate for JSON. */
  end: number;
};
/** An object in JSON is one column, and those of its fields that are read, such as `meta.maxVisits`, are others. */
export type LinkFile = { format: Format; columns: string[]; rows: AsyncIterable<FileRow> };

/** The first columns of a file of refused rows. What follows is as in the file that they come from. */
export const REFUSAL_COLUMNS = ["row", "reason"];

/** JSON is parsed as a whole. CSV files are read in parts, and have no limit. */
export const JSON_MAX = 100 * 2 ** 20;
// A link takes at most 60 KB.
const RECORD_MAX = 2 ** 20;
// Objects of one list may lack the fields that have no value.
const SAMPLE = 100;
const DELIMITERS = [",", ";", "\t"];

type Info = { info: { records: number; empty_lines: number; bytes: number }; record: string[] };

/** Reads as much as it takes to know the format. @throws Problem 422 */
export async function readLinkFile(bytes: AsyncIterable<Uint8Array>): Promise<LinkFile> {
  const texts = decode(bytes)[Symbol.asyncIterator]();
  const start = await readStart(texts);
  if (start.trim() === "") throw invalidField("file", "must not be empty");
  const all = (async function* () {
    yield start;
    yield* { [Symbol.asyncIterator]: () => texts };
  })();
  return /^\s*[[{]/.test(start) ? readJson(all) : readCsv(all, start);
}

async function* decode(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    for await (const part of bytes) yield decoder.decode(part, { stream: true });
    yield decoder.decode();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    throw invalidField("file", "The file isn't UTF-8. In a spreadsheet program, save it as CSV UTF-8.");
  }
}

/** Resolves to the first line, or more. */
async function readStart(texts: AsyncIterator<string>): Promise<string> {
  let start = "";
  while (!/\S.*\n/.test(start) && start.length < RECORD_MAX) {
    const { value, done } = await texts.next();
    if (done) break;
    start += value;
  }
  return start;
}

async function readCsv(texts: AsyncIterable<string>, start: string): Promise<LinkFile> {
  const parser = parse({
    delimiter: delimiterOf(start),
    info: true,
    max_record_size: RECORD_MAX,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
  });
  const records = Readable.from(texts)
    .on("error", (error) => parser.destroy(error))
    .pipe(parser)
    [Symbol.asyncIterator]() as AsyncIterator<Info>;
  const next = () => records.next().catch(rejectCsv);
  const header: string[] = (await next()).value?.record ?? [];
  const hasRefusals = REFUSAL_COLUMNS.every((name, index) => header[index] === name);
  const cellsOf = (record: string[]) =>
    hasRefusals ? record.slice(REFUSAL_COLUMNS.length).map(withoutEscape) : record;
  const columns = cellsOf(header);
  const format = formatOf(columns);
  const { readCell = withoutNull } = format;
  const names = columns.map(plainName);

  async function* rows(): AsyncGenerator<FileRow> {
    for (let result = await next(); !result.done; result = await next()) {
      const { info, record } = result.value;
      const cells = cellsOf(record);
      const fields = Object.fromEntries(names.map((name, index) => [name, readCell(cells[index] ?? "")]));
      yield { number: info.records + info.empty_lines, fields, cells, end: info.bytes };
    }
  }
  return { format, columns, rows: rows() };
}

function rejectCsv(error: unknown): never {
  if (!(error instanceof CsvError)) throw error;
  const { lines } = error as CsvError & { lines?: number };
  const rule =
    error.code === "CSV_QUOTE_NOT_CLOSED" ? "must close every quote" : "must not have rows of more than 1 MB";
  throw invalidField("file", `${rule} (line ${lines})`);
}

/** Returns the most frequent separator of the first line. */
function delimiterOf(start: string): string {
  const [line = ""] = start.trimStart().split("\n", 1);
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string;
}

async function readJson(texts: AsyncIterable<string>): Promise<LinkFile> {
  const parts: string[] = [];
  let length = 0;
  for await (const text of texts) {
    parts.push(text);
    length += text.length;
    if (length > JSON_MAX)
      throw invalidField("file", `must be at most ${JSON_MAX / 2 ** 20} MB if it is JSON; CSV has no limit`);
  }
  const text = parts.join("");
  const bytes = Buffer.byteLength(text);
  const objects = listIn(parseJson(text)) ?? [];
  const rows = objects.map(flatten);
  const format = formatOf([...new Set(rows.slice(0, SAMPLE).flatMap((row) => Object.keys(row)))]);
  const isRead = new Set(Object.values(format.columns).flat());
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))].filter(
    (column) => !column.includes(".") || isRead.has(column),
  );
  return {
    format,
    columns,
    rows: (async function* () {
      for (const [index, row] of rows.entries()) {
        const number = index + 1;
        yield {
          number,
          fields: toPlainNames(row),
          // Only of refused rows: if every object has other fields, there are as many columns as fields in the file.
          get cells() {
            return columns.map((column) => row[column]);
          },
          end: (bytes * number) / rows.length,
        };
      }
    })(),
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw invalidField("file", `must be valid JSON: ${(error as Error).message}`);
  }
}

/** Finds the links in a response of an API, or in an array of such responses. */
function listIn(value: unknown): unknown[] | undefined {
  if (Array.isArray(value)) {
    const lists = value.map((item) => (Array.isArray(item) ? item : listIn(item)));
    return lists.some((list) => list !== undefined) ? lists.flatMap((list) => list ?? []) : value;
  }
  if (!isObject(value)) return undefined;
  const { data, links, shortUrls } = value;
  if (isObject(shortUrls)) return listIn(shortUrls);
  if (Array.isArray(links)) return links;
  // YOURLS numbers the links in the names of an object.
  if (isObject(links)) return Object.values(links);
  return Array.isArray(data) ? data : undefined;
}

/** Joins the names of nested objects: `{meta: {maxVisits}}` → `{"meta.maxVisits"}`. */
function flatten(value: unknown): Fields {
  if (!isObject(value)) return {};
  const fields: Fields = {};
  for (const [name, item] of Object.entries(value)) {
    fields[name] = item;
    if (isObject(item)) for (const [inner, part] of Object.entries(item)) fields[`${name}.${inner}`] = part;
  }
  return fields;
}

function toPlainNames(row: Fields): Fields {
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [plainName(name), value]));
}

function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
