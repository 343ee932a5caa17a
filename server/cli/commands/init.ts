import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Tokens } from "marked";
import { type Command, CommandError } from "../execution/command.ts";

const DOCS = new URL("../../../docs/", import.meta.url);
const LINE_WIDTH = 100;

type Target = {
  /** Files of `docs/operate/deploy/` that are copied. */
  examples: string[];
  settingsFile: string;
  settings(): Record<string, string>;
  next: string;
};

const randomKey = () => randomBytes(32).toString("base64url");

const TARGETS: Record<string, Target> = {
  env: {
    examples: [],
    settingsFile: ".env",
    settings: () => ({}),
    next: "Remove the # before the settings that you want to change, then start the server: npx linkgate",
  },
  systemd: {
    examples: ["linkgate.service"],
    settingsFile: "linkgate.env",
    settings: () => ({
      BASE_URL: "https://links.example.com",
      DATABASE_URL: "sqlite:/var/lib/linkgate/linkgate.sqlite",
      TRUST_PROXY: "1",
    }),
    next: "Set BASE_URL in linkgate.env, then install both files as the documentation says, under Deploy: systemd.",
  },
  compose: {
    examples: ["compose.yaml", "Containerfile"],
    settingsFile: ".env",
    settings: () => ({
      BASE_URL: "https://links.example.com",
      ENCRYPTION_KEY: randomKey(),
      POSTGRES_PASSWORD: randomKey(),
    }),
    next: "Set BASE_URL in .env, put the tarball of the release beside it, then: docker compose up -d",
  },
};

export const initCommand: Command = {
  name: "init",
  summary: "Write .env, or files for systemd or compose",
  arguments: { "[target]": "env (the default), systemd or compose" },
  example: "compose",
  describe: (result) => {
    const { files, next } = result as { files: string[]; next: string };
    return `${files.map((file) => `Wrote ${file}.`).join("\n")}\n${next}`;
  },
  async runAlone({ args: [name = "env"] }) {
    const target = TARGETS[name];
    if (!target) throw new CommandError("invalid_target", "The target must be env, systemd or compose.");
    const { examples, settingsFile, next } = target;
    const files = [...examples, settingsFile].map((file) => path.resolve(file));
    const existing = files.find((file) => existsSync(file));
    if (existing) throw new CommandError("file_exists", `${existing} exists. Nothing was written.`);
    for (const file of examples)
      writeFileSync(file, readFileSync(new URL(`operate/deploy/${file}`, DOCS)), { flag: "wx" });
    // Settings can be secrets.
    writeFileSync(settingsFile, await describeSettings(target.settings()), { flag: "wx", mode: 0o600 });
    return { files, next };
  },
};

/** Describes every setting of the documentation, with the given value, or as a comment with its default. */
async function describeSettings(given: Record<string, string>): Promise<string> {
  const { lexer } = await import("marked");
  const others = new Map(Object.entries(given));
  const tokens = lexer(readFileSync(new URL("settings.md", DOCS), "utf8"));
  const parts = tokens.flatMap((token) => {
    if (token.type === "heading" && token.depth === 2) return [`## ${token.text}`];
    if (token.type !== "table") return [];
    return (token as Tokens.Table).rows.map(([names, initial, description]) => {
      const lines = (names?.text.match(/\w+/g) ?? []).map((name) =>
        others.delete(name) ? `${name}=${given[name]}` : `#${name}=${defaultOf(initial?.text ?? "")}`,
      );
      return [...wrap(plainTextOf(description?.text ?? "")), ...lines].join("\n");
    });
  });
  const head = "# The settings of linkgate. Those that begin with # have the value that is shown, or none.";
  const first = [...others].map(([name, value]) => `${name}=${value}`);
  return `${[head, ...first, ...parts].join("\n\n")}\n`;
}

/** A default that is described in words isn't a value. */
function defaultOf(text: string): string {
  return /^`([^`$]*)`$/.exec(text)?.[1] ?? "";
}

function plainTextOf(markdown: string): string {
  return markdown.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");
}

function wrap(text: string): string[] {
  if (text === "") return [];
  const pattern = new RegExp(`(.{1,${LINE_WIDTH}})(?:\\s+|$)`, "g");
  return text.replaceAll(pattern, "# $1\n").trimEnd().split("\n");
}
