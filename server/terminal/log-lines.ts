import { styleText } from "node:util";

export type LoggedError = {
  type: string;
  code?: string;
  message?: string;
  stack?: string;
  cause?: LoggedError;
};
type LogRecord = { level: string; time: string; msg?: string; err?: LoggedError } & {
  [field: string]: unknown;
};
type Style = Parameters<typeof styleText>[0];

const LEVEL_STYLES: { [level: string]: Style } = {
  fatal: "red",
  error: "red",
  warn: "yellow",
  info: "cyan",
  debug: "gray",
  trace: "gray",
};
// Of the status, by its first digit.
const STATUS_STYLES: { [digit: string]: Style } = { 2: "green", 3: "cyan", 4: "yellow", 5: "red" };
const METHOD_WIDTH = 6;
const LEVEL_WIDTH = 5;

// Without a terminal, with NO_COLOR or with TERM=dumb, `styleText` returns the text itself.
const dim = (text: string) => styleText("gray", text);

/** Returns what a person reads instead of a JSON line of the log. */
export function toLogLine(json: string): string {
  const { level, time, msg = "", err, ...fields } = JSON.parse(json) as LogRecord;
  const start = dim(clockTime(new Date(time)));
  if (msg === "request") return `${start} ${requestOf(fields)}\n`;
  const label = styleText(LEVEL_STYLES[level] ?? "gray", level.padEnd(LEVEL_WIDTH));
  const details = Object.entries(fields).map(([name, value]) => dim(`${name}=${plain(textOf(value))}`));
  return `${[start, label, plain(msg), ...details].join(" ")}\n${err ? errorOf(err) : ""}`;
}

function requestOf({ status, method, route, path = route, ms, who }: { [field: string]: unknown }): string {
  const shownStatus = styleText(STATUS_STYLES[String(status)[0] as string] ?? "gray", String(status));
  const words = [
    shownStatus,
    String(method).padEnd(METHOD_WIDTH),
    plain(String(path)),
    dim(`${round(ms)} ms`),
  ];
  if (typeof who === "string") words.push(dim(plain(who)));
  return words.join(" ");
}

function errorOf({ type, code, message, stack, cause }: LoggedError, indent = "  "): string {
  const title = plain([type, code && `(${code})`].filter(Boolean).join(" "));
  const first = `${indent}${styleText("red", title)}${message === undefined ? "" : `: ${plain(message)}`}\n`;
  const frames = (stack ?? "").split("\n").filter(Boolean);
  const lines = frames.map((frame) => `${indent}  ${dim(plain(frame.trim()))}\n`);
  return `${first}${lines.join("")}${cause ? `${indent}caused by\n${errorOf(cause, indent)}` : ""}`;
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function round(ms: unknown): string {
  const value = Number(ms);
  return value < 10 ? value.toFixed(1) : value.toFixed(0);
}

export function clockTime(time: Date): string {
  return time.toTimeString().slice(0, "00:00:00".length);
}

/** Replaces what would move the cursor, change colors or reverse text: a request must not. */
export function plain(text: string): string {
  return text.replace(/[\p{Cc}\p{Bidi_Control}]/gu, "\ufffd");
}
