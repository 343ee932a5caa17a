import { randomBytes } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, rmSync, statSync, truncateSync } from "node:fs";
import path from "node:path";
import type { Tokens } from "marked";
import { PRODUCTION_CHOICES } from "../../settings/production-choices.ts";
import {
  type Command,
  CommandError,
  type CommandInput,
  eitherOf,
  missingOption,
} from "../execution/command.ts";

/** The options for settings that production requires. */
const CHOICES = PRODUCTION_CHOICES.map(({ name, meanings }) => {
  const flag = name.toLowerCase().replaceAll("_", "-");
  const member = flag.replaceAll(/-(.)/g, (_, letter: string) => letter.toUpperCase());
  return { name, meanings, member, syntax: `--${flag} <${Object.keys(meanings).join("|")}>` };
});

const choiceOptions = Object.fromEntries(CHOICES.map(({ syntax, name }) => [syntax, `value of ${name}`]));

const DOCS = new URL("../../../docs/", import.meta.url);

type Target = {
  /** Files of `docs/operate/deploy/` that are copied. */
  examples: string[];
  settingsFile: string;
  settings(): Record<string, string>;
  next: string;
  /** Whether the files set `NODE_ENV=production`. */
  isProduction: boolean;
};

const randomKey = () => randomBytes(32).toString("base64url");

const TARGETS: Record<string, Target> = {
  env: {
    examples: [],
    settingsFile: ".env",
    settings: () => ({}),
    isProduction: false,
    next: "Edit .env, then run: npx linkgate",
  },
  systemd: {
    examples: ["linkgate.service"],
    settingsFile: "linkgate.env",
    settings: () => ({
      BASE_URL: "https://links.example.com",
      DATABASE_URL: "sqlite:/var/lib/linkgate/linkgate.sqlite",
      TRUST_PROXY: "1",
    }),
    isProduction: true,
    next: `Set BASE_URL in linkgate.env. The unit runs the package in /opt/linkgate as
the user linkgate. When both exist, run:

  sudo install -m 640 -g linkgate linkgate.env /etc/linkgate.env
  sudo install -m 644 linkgate.service /etc/systemd/system/
  sudo systemctl daemon-reload
  sudo systemctl enable --now linkgate`,
  },
  compose: {
    examples: ["compose.yaml", "Containerfile"],
    settingsFile: ".env",
    settings: () => ({
      BASE_URL: "https://links.example.com",
      ENCRYPTION_KEY: randomKey(),
      POSTGRES_PASSWORD: randomKey(),
    }),
    isProduction: true,
    next: "Set BASE_URL in .env, copy linkgate-*.tgz here, then run: docker compose up -d",
  },
};

export const initCommand: Command = {
  name: "init",
  summary: "Write .env, or files for systemd or compose",
  arguments: { "[env|systemd|compose]": "what to write (default: env)" },
  options: choiceOptions,
  example: "compose",
  describe: (result) => {
    const { files, added, next } = result as Written;
    const lines = files.map((file) => `Wrote ${file}.`);
    if (added.length > 0) lines.push(`Added to the settings: ${added.join(", ")}.`);
    return [...(lines.length > 0 ? lines : ["Nothing is missing."]), next].join("\n");
  },
  async runAlone({ args: [name = "env"], options }) {
    const target = Object.hasOwn(TARGETS, name) ? TARGETS[name] : undefined;
    if (!target) throw new CommandError("invalid_target", "The target must be env, systemd or compose.");
    const { examples, settingsFile, next } = target;
    const files = [...examples, settingsFile].filter((file) => !existsSync(file));
    const present = files.includes(settingsFile) ? undefined : readFileSync(settingsFile, "utf8");
    const choices = await readChoices(options, {
      isRequired: target.isProduction,
      isSet: (name) => hasLine(present, `${name}=`),
    });
    for (const file of examples)
      if (files.includes(file))
        await append(file, readFileSync(new URL(`operate/deploy/${file}`, DOCS), "utf8"));
    const { text, names } = await describeSettings({ ...target.settings(), ...choices }, present);
    if (names.length > 0) await append(settingsFile, text);
    const added = present === undefined ? [] : names;
    return { files: files.map((file) => path.resolve(file)), added, next } satisfies Written;
  },
};

type Written = { files: string[]; added: string[]; next: string };

/** Leaves no part behind if the disk is full. Settings can be secrets, so a new file is for its owner only. */
async function append(file: string, text: string): Promise<void> {
  const before = statSync(file, { throwIfNoEntry: false })?.size;
  try {
    appendFileSync(file, text, { mode: file.endsWith(".env") ? 0o600 : 0o644 });
  } catch (error) {
    if (before === undefined) rmSync(file, { force: true });
    else truncateSync(file, before);
    const { toFileError } = await import("../../startup-errors.ts");
    throw toFileError(Object.assign(error as Error, { path: path.resolve(file) }));
  }
}

/**
 * Lists every setting of the documentation with its description: the given ones, others as comments. Without those that
 * are present already, as settings or comments; a comment isn't enough for a given one.
 */
async function describeSettings(given: Record<string, string>, present?: string) {
  const { lexer } = await import("marked");
  const isMissing = (name: string) =>
    !hasLine(present, `${name}=`) && (given[name] !== undefined || !hasLine(present, `#${name}=`));
  const others = new Map(Object.entries(given).filter(([name]) => isMissing(name)));
  const names: string[] = [...others.keys()];
  const tokens = lexer(readFileSync(new URL("settings.md", DOCS), "utf8"));
  const parts = tokens.flatMap((token) => {
    if (token.type === "heading" && token.depth === 2)
      return present === undefined ? [`## ${token.text}`] : [];
    if (token.type !== "table") return [];
    return (token as Tokens.Table).rows.flatMap(([cell, initial, description]) => {
      const missing = (cell?.text.match(/\w+/g) ?? []).filter(isMissing);
      if (missing.length === 0) return [];
      names.push(...missing.filter((name) => given[name] === undefined));
      const lines = missing.map((name) =>
        others.delete(name) ? `${name}=${given[name]}` : `#${name}=${defaultOf(initial?.text ?? "")}`,
      );
      return [[...wrap(plainTextOf(description?.text ?? "")), ...lines].join("\n")];
    });
  });
  const head =
    present === undefined
      ? "# The settings of linkgate. Lines such as #PORT=3000 show the defaults."
      : `${present.endsWith("\n") ? "" : "\n"}\n# Added by linkgate init.`;
  const first = [...others].map(([name, value]) => `${name}=${value}`);
  return { text: `${[head, ...first, ...parts].join("\n\n")}\n`, names };
}

function hasLine(text: string | undefined, start: string): boolean {
  return text?.split("\n").some((line) => line.startsWith(start)) ?? false;
}

/** A default that is described in words isn't a value. */
function defaultOf(text: string): string {
  return /^`([^`$]*)`$/.exec(text)?.[1] ?? "";
}

function plainTextOf(markdown: string): string {
  // The pages are not beside the file.
  const text = markdown.replaceAll(/; see \[[^[\]]*\]\([^()]*\)/g, "");
  return text.replaceAll(/\[([^[\]]*)\]\([^()]*\)/g, "$1").replaceAll("`", "");
}

function wrap(text: string): string[] {
  const lines = text.match(/\S.{0,99}(?!\S)|\S+/g) ?? [];
  return lines.map((line) => `# ${line}`);
}

/**
 * Returns the settings that production requires and that are not set yet, from the options, or from a person at the
 * terminal. Throws CommandError if a value is wrong, or if one is missing although `isRequired`.
 */
async function readChoices(
  options: CommandInput["options"],
  { isRequired, isSet }: { isRequired: boolean; isSet(name: string): boolean },
): Promise<Record<string, string>> {
  const canAsk = process.stdin.isTTY && process.stderr.isTTY;
  const choices: Record<string, string> = {};
  for (const { name, meanings, member, syntax } of CHOICES.filter(({ name }) => !isSet(name))) {
    const answer = options[member] ?? (canAsk ? await ask(name, meanings) : undefined);
    if (answer === undefined && isRequired) throw missingOption("usage", syntax);
    if (answer === undefined) continue;
    if (!Object.hasOwn(meanings, String(answer)))
      throw new CommandError("invalid_setting", `${name} must be ${eitherOf(Object.keys(meanings))}.`);
    choices[name] = String(answer);
  }
  return choices;
}

async function ask(name: string, meanings: Record<string, string>): Promise<string> {
  const lines = Object.entries(meanings).map(([value, meaning]) => `  ${value.padEnd(8)}${meaning}\n`);
  process.stderr.write(`${name}\n${lines.join("")}`);
  // It opens databases for other commands, which help has no use for.
  const { prompt } = await import("../execution/run.ts");
  return (await prompt(`${eitherOf(Object.keys(meanings))}?`, false)).trim();
}
