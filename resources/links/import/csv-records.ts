import { invalidField } from "../../http/validate.ts";

/** A cell is null if it stands for a missing value. `number` counts all records, also empty ones, as spreadsheets do. */
export type CsvRecord = { cells: (string | null)[]; number: number; end: number };

export type Dialect = {
  delimiter: string;
  /** A backslash gives the next character another meaning, as MySQL's `INTO OUTFILE` writes and `LOAD DATA` reads it. */
  hasEscapes: boolean;
  /** What stands for a missing value, unless it is quoted. */
  nulls: ReadonlySet<string>;
};

export const NULL_ESCAPE = String.raw`\N`;
export const COLUMNS_MAX = 100;
/** A link takes at most 60 KB. Exports have other columns, too. */
export const RECORD_MAX = 256 * 1024;
export const TOO_LONG = `must not have rows of more than ${RECORD_MAX / 1024} KB`;
const ESCAPES: Record<string, string> = { b: "\b", n: "\n", r: "\r", t: "\t", Z: "\u001a", "0": "\0" };
const [QUOTE, BACKSLASH, LF, CR] = [...'"\\\n\r'].map((character) => character.charCodeAt(0));

/**
 * Reads records as RFC 4180 describes them, with any line breaks, or with backslash escapes: no library reads both, and
 * knows which cells are quoted. Takes linear time. @throws Problem 422 that names the line
 */
export async function* readRecords(
  texts: AsyncIterable<string>,
  { delimiter, hasEscapes, nulls }: Dialect,
): AsyncGenerator<CsvRecord> {
  const separator = delimiter.charCodeAt(0);
  let cells: CsvRecord["cells"] = [];
  let cell = "";
  let number = 0;
  let line = 1;
  let before = 0; // characters of earlier parts
  let start = 0; // of the record
  let quotes: "none" | "open" | "closed" = "none";
  let isEscaped = false;
  let isNull = false;
  let isAfterReturn = false;

  function fail(rule: string): never {
    throw invalidField("file", `${rule} (line ${line})`);
  }
  function endCell(): void {
    const isMissing = quotes === "none" && (isNull ? cell === "N" : nulls.has(cell));
    cells.push(isMissing ? null : cell);
    if (cells.length > COLUMNS_MAX) fail(`must have at most ${COLUMNS_MAX} columns`);
    cell = "";
    quotes = "none";
    isNull = false;
  }
  /** Returns undefined if all cells are blank. */
  function endRecord(end: number): CsvRecord | undefined {
    start = end;
    number++;
    if (cells.length === 0 && cell === "" && quotes === "none") return undefined;
    endCell();
    const record = { cells, number, end };
    cells = [];
    return record.cells.some((one) => one !== null && one.trim() !== "") ? record : undefined;
  }

  for await (const text of texts) {
    let from = 0; // of the characters that aren't in the cell yet
    for (let index = 0; index < text.length; index++) {
      const code = text.charCodeAt(index);
      const isFirst = index === from && cell === "" && quotes === "none";
      const isSecondOfBreak = isAfterReturn && code === LF;
      isAfterReturn = false;
      if (code === LF && !isSecondOfBreak) line++;
      if (isEscaped) {
        const character = text.charAt(index);
        isNull ||= isFirst && character === "N";
        cell += ESCAPES[character] ?? character;
        isEscaped = false;
      } else if (hasEscapes && code === BACKSLASH) {
        if (quotes === "closed") fail("must have a separator after each closing quote");
        cell += text.slice(from, index);
        isEscaped = true;
      } else if (quotes === "open") {
        if (code !== QUOTE) continue;
        cell += text.slice(from, index);
        quotes = "closed";
      } else if (code === QUOTE && quotes === "closed") {
        cell += '"';
        quotes = "open";
      } else if (code === QUOTE && isFirst) {
        quotes = "open";
      } else if (code === separator) {
        cell += text.slice(from, index);
        endCell();
      } else if (code === LF || code === CR) {
        cell += text.slice(from, index);
        isAfterReturn = code === CR;
        const record = isSecondOfBreak ? undefined : endRecord(before + index + 1);
        if (record) yield record;
      } else {
        if (quotes === "closed") fail("must have a separator after each closing quote");
        continue;
      }
      from = index + 1;
    }
    cell += text.slice(from);
    before += text.length;
    if (before - start > RECORD_MAX) fail(TOO_LONG);
  }
  if (quotes === "open" || isEscaped) fail("must close every quote");
  const last = endRecord(before);
  if (last) yield last;
}
