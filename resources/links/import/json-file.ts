import { setImmediate as nextTurn } from "node:timers/promises";
import { Problem } from "../../http/problem.ts";
import { invalidField, isObject } from "../../http/validate.ts";
import { COLUMNS_MAX } from "./csv-records.ts";
import { type CheckRows, type Fields, formatOf, type LinkFile, NESTED_FIELDS, plainName } from "./formats.ts";
import { parseValue, rowsIn } from "./json-rows.ts";

// JSON is in memory as a whole. CSV files are read in parts, and have no limit.
const JSON_MAX = 100 * 2 ** 20;
// Objects of one list may lack the fields that have no value.
const SAMPLE = 100;
// They take about a millisecond. Other requests are served between two turns.
const ROWS_PER_TURN = 100;
const CHARACTERS_PER_TURN = 32 * 1024;

/** Parses all rows first, so nothing is imported from a file that is broken at its end. @throws Problem 422 */
export async function readJson(texts: AsyncIterable<string>, checkRows: CheckRows): Promise<LinkFile> {
  const rows = await parseRows(await join(texts), checkRows);
  const format = formatOf([...new Set(rows.slice(0, SAMPLE).flatMap((row) => Object.keys(row)))]);
  const names = new Set<string>();
  for (const row of rows) {
    for (const name of Object.keys(row)) names.add(name);
    if (names.size > COLUMNS_MAX)
      throw invalidField("file", `must have at most ${COLUMNS_MAX} different fields`);
  }
  const columns = [...names];
  return {
    format,
    columns,
    rows: (async function* () {
      for (const [index, row] of rows.entries()) {
        const number = index + 1;
        yield {
          number,
          fields: Object.fromEntries(columns.map((name) => [plainName(name), row[name]])),
          cells: columns.map((column) => row[column]),
          share: number / rows.length,
        };
      }
    })(),
  };
}

async function join(texts: AsyncIterable<string>): Promise<string> {
  const parts: string[] = [];
  let length = 0;
  for await (const text of texts) {
    parts.push(text);
    length += text.length;
    if (length > JSON_MAX)
      throw invalidField("file", `must be at most ${JSON_MAX / 2 ** 20} MB if it is JSON; CSV has no limit`);
  }
  return parts.join("");
}

async function parseRows(text: string, checkRows: CheckRows): Promise<Fields[]> {
  const rows: Fields[] = [];
  let turn = 0;
  for (const { value, end } of valuesIn(text)) {
    checkRows(rows.push(withNested(value)));
    if (rows.length % ROWS_PER_TURN > 0 && end < turn + CHARACTERS_PER_TURN) continue;
    turn = end;
    await nextTurn();
  }
  return rows;
}

/** Yields each row with its end in the text. Errors name the row. */
function* valuesIn(text: string): Generator<{ value: Fields; end: number }> {
  let row = 1;
  try {
    for (const { start, end } of rowsIn(text)) {
      const value = parseValue(text.slice(start, end), "file");
      if (!isObject(value)) throw new SyntaxError("A link must be an object");
      yield { value, end };
      row++;
    }
  } catch (error) {
    if (error instanceof SyntaxError)
      throw invalidField("file", `must be valid JSON: ${error.message} (row ${row})`);
    if (error instanceof Problem) throw invalidField("file", `${error.errors?.[0]?.message} (row ${row})`);
    throw error;
  }
}

/** Adds the fields of objects that are read: `{meta: {maxVisits: 1}}` → `{meta: …, "meta.maxVisits": 1}`. */
function withNested(value: Fields): Fields {
  const row: Fields = Object.assign(Object.create(null), value);
  for (const path of NESTED_FIELDS) {
    const [name = "", inner = ""] = path.split(".");
    const part = row[name];
    if (isObject(part) && Object.hasOwn(part, inner)) row[path] = part[inner];
  }
  return row;
}
