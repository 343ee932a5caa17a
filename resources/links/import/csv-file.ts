import { COLUMNS_MAX, NULL_ESCAPE, readRecords } from "./csv-records.ts";
import {
  type CheckRows,
  type FileRow,
  formatOf,
  isRead,
  type LinkFile,
  plainName,
  rejectRepeated,
} from "./formats.ts";
import { withoutEscape } from "./values.ts";

/** The first columns of a file of refused rows. What follows is as in the file that they come from. */
export const REFUSAL_COLUMNS = ["row", "reason"];
// Only an export of this service has it.
const OWN_COLUMN = "disabled_reason";
type OpenTexts = () => AsyncIterable<string>;

const DELIMITERS = [",", ";", "\t"];
const NO_NULLS: ReadonlySet<string> = new Set();
const ESCAPED_NULL = new Set([NULL_ESCAPE]);
// What exports of databases write for a missing value.
const NULLS = new Set(["null", "NULL", NULL_ESCAPE]);
// Excel takes the separator from such a line, and doesn't count it.
const SEPARATOR_LINE = /^\s*sep=([,;\t|])(?:\r\n|\r|\n)/i;

/** Reads the file to its end before the first row, so nothing is imported from a broken one. @throws Problem 422 */
export async function readCsv(open: OpenTexts, start: string, checkRows: CheckRows): Promise<LinkFile> {
  const [line = "", named] = SEPARATOR_LINE.exec(start) ?? [];
  const delimiter = named ?? delimiterOf(start);
  const openTable = () => without(line.length, open());
  const header = await readHeader(openTable(), delimiter);
  const hasRefusals = REFUSAL_COLUMNS.every((name, index) => header[index] === name);
  const withoutRefusal = (cells: string[]) =>
    hasRefusals ? cells.slice(REFUSAL_COLUMNS.length).map(withoutEscape) : cells;
  const columns = withoutRefusal(header);
  const format = formatOf(columns);
  rejectRepeated(columns, format);
  const isOwn = hasRefusals || columns.includes(OWN_COLUMN);
  const { hasEscapes, length } = await scan(openTable, delimiter, isOwn, checkRows);
  const nulls = isOwn ? NO_NULLS : format.readCell ? ESCAPED_NULL : NULLS;
  const { readCell = (text: string) => text } = format;
  const names = columns.map(plainName);
  const mayBeEscaped = columns.map((column) => !hasEscapes && !isOwn && isRead(column, format));

  function refusalOf(cells: string[]): string | undefined {
    if (cells.slice(columns.length).some((cell) => cell !== ""))
      return "The row has more cells than the file has columns.";
    const index = cells.findIndex((cell, index) => mayBeEscaped[index] && hasDoubtfulBackslash(cell));
    if (index >= 0) return `${columns[index]} has a backslash that may stand for the character behind it.`;
    return undefined;
  }

  async function* rows(): AsyncGenerator<FileRow> {
    const records = readRecords(openTable(), { delimiter, hasEscapes, nulls });
    await records.next(); // the header
    for await (const { cells: record, number, end } of records) {
      const cells = withoutRefusal(record.map((cell) => cell ?? ""));
      const fields = Object.fromEntries(names.map((name, index) => [name, readCell(cells[index] ?? "")]));
      yield { number, fields, cells, share: end / length, refusal: refusalOf(cells) };
    }
  }
  return { format, columns, rows: rows() };
}

/** Returns the most frequent separator of the first line that isn't blank. */
function delimiterOf(start: string): string {
  const [line = ""] = start.trimStart().split(/[\r\n]/, 1);
  const counts = DELIMITERS.map((delimiter) => line.split(delimiter, COLUMNS_MAX + 1).length);
  return DELIMITERS[counts.indexOf(Math.max(...counts))] as string;
}

async function* without(count: number, texts: AsyncIterable<string>): AsyncGenerator<string> {
  let left = count;
  for await (const text of texts) {
    yield text.slice(left);
    left = Math.max(0, left - text.length);
  }
}

async function readHeader(texts: AsyncIterable<string>, delimiter: string): Promise<string[]> {
  for await (const { cells } of readRecords(texts, { delimiter, hasEscapes: false, nulls: NO_NULLS }))
    return cells as string[];
  return [];
}

/**
 * Finds out whether backslashes are escapes: if there is a missing value `\N`, or if the quotes make no sense otherwise.
 * `length` is that of the file, in characters. @throws Problem 422 if the file is broken
 */
async function scan(open: OpenTexts, delimiter: string, isOwn: boolean, checkRows: CheckRows) {
  const read = async (hasEscapes: boolean) => {
    let [rows, length, hasNull] = [-1, 0, false];
    for await (const { cells, end } of readRecords(open(), { delimiter, hasEscapes, nulls: ESCAPED_NULL })) {
      checkRows(++rows);
      length = end;
      hasNull ||= cells.includes(null);
    }
    return { length, hasEscapes: hasEscapes || (hasNull && !isOwn) };
  };
  return read(false).catch((error) => {
    if (isOwn) throw error;
    return read(true).catch(() => Promise.reject(error));
  });
}

/** In a file with escapes, backslashes come in pairs, or stand before something that they give another meaning. */
function hasDoubtfulBackslash(cell: string): boolean {
  if (!cell.includes("\\")) return false;
  const rest = cell.replaceAll("\\\\", "");
  return rest.endsWith("\\") || (rest !== cell && !rest.includes("\\"));
}
