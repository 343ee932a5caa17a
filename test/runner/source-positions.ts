import { readFileSync } from "node:fs";
import { SourceMap } from "node:module";
import path from "node:path";
import { fileURLToPath } from "node:url";

const POSITION = /file:\/\/[^\s()]*\/linkgate-tests\/[^\s():]+\.js:\d+:\d+/g;
const maps = new Map<string, SourceMap>();

/** Replaces the positions in a bundle by those in the sources. */
export function toSources(text: string): string {
  return text.replaceAll(POSITION, (position) => {
    const [, url = "", line, column] = /^(.*):(\d+):(\d+)$/.exec(position) ?? [];
    const file = fileURLToPath(url);
    const origin = mapOf(file).findOrigin(Number(line), Number(column));
    if (!("fileName" in origin)) return position;
    const source = path.resolve(path.dirname(file), origin.fileName);
    return `${path.relative(process.cwd(), source)}:${origin.lineNumber}:${origin.columnNumber}`;
  });
}

function mapOf(file: string): SourceMap {
  const known = maps.get(file);
  if (known) return known;
  const map = new SourceMap(JSON.parse(readFileSync(`${file}.map`, "utf8")));
  maps.set(file, map);
  return map;
}
