import { globSync, readdirSync, symlinkSync } from "node:fs";
import path from "node:path";
import { type Ending, Program, ROOT, temporaryFolder } from "./program.ts";

// `npx linkgate` is this checkout. What runs until it is interrupted is interrupted when it is ready.
const SHELL = `
trap 'echo "failed: $BASH_COMMAND" >&2' ERR
run_until() {
  local pattern=$1 pid line
  shift
  exec 3< <(exec "$@" 2>&1)
  pid=$!
  while IFS= read -r line <&3; do
    echo "$line"
    [[ $line =~ $pattern ]] || continue
    kill $pid
    wait $pid || true
    return 0
  done
  return 1
}
npx() {
  [ "$1" = linkgate ] && shift
  case \${1-start} in
  start) PORT=0 run_until '^linkgate listening on ' node ${ROOT}server/cli/linkgate.js ;;
  dev) run_until '^linkgate listening on ' node ${ROOT}server/cli/linkgate.js dev --port 0 ;;
  listen) run_until '^Listening to ' node ${ROOT}server/cli/linkgate.js "$@" ;;
  *) node ${ROOT}server/cli/linkgate.js "$@" ;;
  esac
}
npm() {
  case $* in
  start) PORT=0 run_until '^linkgate listening on ' npm start ;;
  'run dev') run_until '^linkgate listening on ' npm run dev -- --port 0 ;;
  run\\ *) command npm "$@" ;;
  *) echo "npm $* would change the packages of this checkout" >&2 && return 1 ;;
  esac
}
`;

const quote = (text: string) => text.replaceAll(/[$()*+.?[\]^{|}\\]/g, "\\$&");

/** Replaces the commands that begin so by `:`, up to their end. */
export function withoutCommand(script: string, beginning: string): string {
  const start = quote(beginning) + (/\w$/.test(beginning) ? "(?![\\w-])" : "");
  const rest = "(?:.*<<'EOF'[\\s\\S]*?\\nEOF|(?:\\\\\\n|(?! && ).)*)";
  return script.replaceAll(new RegExp(`(?<=^|&& )${start}${rest}`, "gm"), ":");
}

/** Creates a folder with the files of the checkout, in which commands can create others. */
export function createCheckout(): string {
  const folder = temporaryFolder("commands");
  const files = readdirSync(ROOT).filter((name) => name !== "data");
  // The scripts for readers are linked from the documentation, to be saved.
  for (const file of [...files, ...globSync("docs/*.mjs", { cwd: ROOT })])
    symlinkSync(path.join(ROOT, file), path.join(folder, path.basename(file)));
  return folder;
}

type Script = { script: string; folder: string; settings: Record<string, string> };

/** Runs a script in a folder until it exits or a command fails. `input` is the standard input of its commands. */
export function runScript({ script, folder: cwd, settings }: Script, input: string): Promise<Ending> {
  const PATH = `${path.dirname(process.execPath)}:${process.env.PATH}`;
  const options = { cwd, settings: { ...settings, PATH } };
  const program = new Program("bash", ["--norc", "-euc", SHELL + script], options);
  program.write(input);
  return program.ended;
}
