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
    next: "Set BASE_URL in .env, copy linkgate-*.tgz here, then run: docker compose up -d",
  },
};

export const initCommand: Command = {
  name: "init",
  summary: "Write .env, or files for systemd or compose",
  arguments: { "[env|systemd|compose]": "what to write (default: env)" },
  example: "compose",
  describe: (result) => {
    const { files, next } = result as { files: string[]; next: string };
    return `${files.map((file) => `Wrote ${file}.`).join("\n")}\n${next}`;
  },
  async runAlone({ args: [name = "env"] }) {
    const target = Object.hasOwn(TARGETS, name) ? TARGETS[name] : undefined;
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

/** Lists every setting of the documentation with its description: the given ones, others as comments. */
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
  const head = "# The settings of linkgate. Lines such as #PORT=3000 show the defaults.";
  const first = [...others].map(([name, value]) => `${name}=${value}`);
  return `${[head, ...first, ...parts].join("\n\n")}\n`;
}

/** A default that is described in words isn't a value. */
function defaultOf(text: string): string {
  return /^`([^`$]*)`$/.exec(text)?.[1] ?? "";
}

function plainTextOf(markdown: string): string {
  // The pages are not beside the file.
  const text = markdown.replaceAll(/; see \[[^\]]*\]\([^)]*\)/g, "");
  return text.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll("`", "");
}

function wrap(text: string): string[] {
  if (text === "") return [];
  const pattern = new RegExp(`(.{1,${LINE_WIDTH}})(?:\\s+|$)`, "g");
  return text.replaceAll(pattern, "# $1\n").trimEnd().split("\n");
}
