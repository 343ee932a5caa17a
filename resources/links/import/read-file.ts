import { setImmediate as nextTurn } from "node:timers/promises";
import { invalidField } from "../../http/validate.ts";
import { readCsv } from "./csv-file.ts";
import type { CheckRows, LinkFile } from "./formats.ts";
import { readJson } from "./json-file.ts";

// They take some milliseconds to read. Other requests are served between two parts.
const PART = 32 * 1024;
// Enough for the names of a hundred columns.
const START_MAX = 64 * 1024;

/** Reads a file up to several times, in parts. @throws Problem 422 if it can't be read to its end */
export async function readLinkFile(
  openBytes: () => AsyncIterable<Uint8Array>,
  checkRows: CheckRows = () => {},
): Promise<LinkFile> {
  const open = () => decode(openBytes());
  const start = await readStart(open());
  const first = start.trimStart().charAt(0);
  if (first === "") throw invalidField("file", "must not be empty");
  return first === "[" || first === "{" ? readJson(open(), checkRows) : readCsv(open, start, checkRows);
}

async function* decode(bytes: AsyncIterable<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const decodePart = (part?: Uint8Array) => {
    try {
      return decoder.decode(part, { stream: part !== undefined });
    } catch {
      throw invalidField("file", "The file isn't UTF-8. In a spreadsheet program, save it as CSV UTF-8.");
    }
  };
  for await (const block of bytes) {
    for (let start = 0; start < block.length; start += PART) {
      yield decodePart(block.subarray(start, start + PART));
      await nextTurn();
    }
  }
  yield decodePart();
}

/** Resolves to the first line that isn't blank, or more. @throws Problem 422 if it doesn't begin, or end, early */
async function readStart(texts: AsyncIterable<string>): Promise<string> {
  let start = "";
  for await (const text of texts) {
    start += text;
    const line = start.search(/\S/);
    if (line >= 0 && (/[[{]/.test(start.charAt(line)) || start.slice(line).search(/[\r\n]/) > 0)) break;
    if (start.length <= START_MAX) continue;
    if (line >= 0)
      throw invalidField("file", `must be JSON, or have a first line of at most ${START_MAX / 1024} KB`);
    break;
  }
  return start;
}
