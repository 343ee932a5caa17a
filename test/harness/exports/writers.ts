import type { Row } from "./services.ts";

/** Writes rows as one program does; `separator` is that of tags. */
export type Write = (rows: Row[], separator: string) => string;

type Cell = Row[string];

const seconds = (time: Date) => time.toISOString().slice(0, 19).replace("T", " ");
const listed = (cell: Cell, separator: string) => (Array.isArray(cell) ? cell.join(separator) : cell);

/** RFC 4180, with quotes only where they are needed. */
function csv(rows: Row[], delimiter: string, lineBreak: string, toText: (cell: Cell) => string): string {
  const quote = (text: string) => (/[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = rows.map((row) => Object.values(row).map((cell) => quote(toText(cell))));
  return [Object.keys(rows[0] ?? {}), ...lines].map((cells) => cells.join(delimiter) + lineBreak).join("");
}

/** `sqlite3 -header -csv` */
const sqlite: Write = (rows, separator) =>
  csv(rows, ",", "\r\n", (cell) => {
    if (cell instanceof Date) return seconds(cell);
    return typeof cell === "boolean" ? String(Number(cell)) : String(listed(cell, separator) ?? "");
  });

/** `\copy links to links.csv csv header` */
const postgres: Write = (rows, separator) =>
  csv(rows, ",", "\n", (cell) => {
    if (cell instanceof Date) return `${seconds(cell)}+00`;
    return typeof cell === "boolean" ? (cell ? "t" : "f") : String(listed(cell, separator) ?? "");
  });

/** `into outfile … fields terminated by ',' enclosed by '"'`, with a first row of names by `union`. */
const outfile: Write = (rows, separator) =>
  escaped(rows, separator, ",", (text) => `"${text.replace(/[\\"\n]/g, "\\$&")}"`);

/** `into outfile` without options: tabs and no quotes. */
const outfileWithTabs: Write = (rows, separator) =>
  escaped(rows, separator, "\t", (text) => text.replace(/[\\\t\n]/g, "\\$&"));

function escaped(rows: Row[], separator: string, delimiter: string, write: (text: string) => string): string {
  const toText = (cell: Cell) => {
    if (cell === null) return "\\N";
    if (typeof cell === "boolean") return write(String(Number(cell)));
    return write(cell instanceof Date ? seconds(cell) : String(listed(cell, separator)));
  };
  const lines = [Object.keys(rows[0] ?? {}).map(write), ...rows.map((row) => Object.values(row).map(toText))];
  return lines.map((cells) => `${cells.join(delimiter)}\n`).join("");
}

/** A response of an API. */
const json: Write = (rows) => JSON.stringify({ data: rows }, undefined, 2);

/** Excel, which reads `2024-03-01 09:30:00` as a time of its own and writes times and booleans in its language. */
function excel(words: [string, string], toDate: (year: string, month: string, day: string) => string): Write {
  return (rows, separator) =>
    `\ufeff${csv(rows, ";", "\r\n", (cell) => {
      if (typeof cell === "boolean") return words[Number(cell)] as string;
      if (!(cell instanceof Date)) return String(listed(cell, separator) ?? "");
      const [year = "", month = "", day = ""] = cell.toISOString().slice(0, 10).split("-");
      return `${toDate(year, month, day)} ${cell.toISOString().slice(11, 16)}`;
    })}`;
}

const germanExcel = excel(["FALSCH", "WAHR"], (year, month, day) => `${day}.${month}.${year}`);
const frenchExcel = excel(["FAUX", "VRAI"], (year, month, day) => `${day}/${month}/${year}`);
/** A file that tells Excel its separator. */
const withSeparatorLine: Write = (rows, separator) =>
  `sep=;\r\n${csv(rows, ";", "\r\n", (cell) => (cell instanceof Date ? cell.toISOString() : String(listed(cell, separator) ?? "")))}`;

export const WRITERS: Record<string, Write> = {
  SQLite: sqlite,
  PostgreSQL: postgres,
  "MariaDB, enclosed in quotes": outfile,
  "MariaDB, separated by tabs": outfileWithTabs,
  "a JSON API": json,
  "German Excel": germanExcel,
  "French Excel": frenchExcel,
  "a program that names its separator": withSeparatorLine,
};
