import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import test from "ava";
import { runCommand, stopPrograms } from "../../harness/program.ts";

export const stage = "processes";

const folder = mkdtempSync(path.join(tmpdir(), "linkgate-refusals-"));
const settings = { DATABASE_URL: `sqlite:${folder}/test.sqlite` };

async function made(...words: string[]) {
  const { stdout } = await runCommand([...words, "--json"], { settings });
  return JSON.parse(stdout).organization.id as string;
}

const paid = await made("org", "create", "Paid", "--plan", "growth");
const free = await made("org", "create", "Free");
await runCommand(["user", "create", "taken", "--org", free], { settings }, "a long enough password");

test.after.always(stopPrograms);
test.after.always(() => rmSync(folder, { recursive: true, force: true }));

const rotate = ["client", "rotate", paid];
const uris = ["client", "redirect-uris", paid];
const create = (name: string, ...rest: string[]) => ["user", "create", name, "--org", free, ...rest];

/** The words, the expected code, and stdin. */
const REFUSALS: [words: string[], code: string, input?: string][] = [
  [[], "unknown_command"],
  [["nonsense"], "unknown_command"],
  [["org"], "unknown_command"],
  [["org", "rename", paid], "unknown_command"],
  [["migrate", "now"], "usage"],
  [["org", "create"], "usage"],
  [["org", "create", "A", "B"], "usage"],
  [["org", "create", "A", "--size", "9"], "usage"],
  [["org", "create", ""], "invalid_name"],
  [["org", "create", "  "], "invalid_name"],
  [["org", "create", "x".repeat(101)], "invalid_name"],
  [["org", "create", "A", "--plan", "gold"], "invalid_plan"],
  [["org", "create", "A", "--plan", "Growth"], "invalid_plan"],
  [["org", "plan", paid], "usage"],
  [["org", "plan", paid, "gold"], "invalid_plan"],
  [["org", "plan", "org_none", "growth"], "not_found"],
  [["org", "show", "org_none"], "not_found"],
  [["org", "show", paid.toLowerCase()], "not_found"],
  [["client", "rotate", "org_none"], "not_found"],
  [["audit", "verify", "org_none"], "not_found"],
  [["audit", "verify", "all"], "not_found"],
  [["client", "rotate", free], "no_client"],
  [[...rotate, "--overlap", "169h"], "invalid_overlap_hours"],
  [[...rotate, "--overlap", "8d"], "invalid_overlap_hours"],
  [[...rotate, "--overlap", "168.01h"], "invalid_overlap_hours"],
  [[...rotate, "--overlap=-1h"], "invalid_overlap_hours"],
  [[...rotate, "--overlap", "1w"], "invalid_overlap_hours"],
  [[...rotate, "--overlap", ""], "invalid_overlap_hours"],
  [[...rotate, "--overlap", "Infinity"], "invalid_overlap_hours"],
  [[...rotate, "--overlap", "1h", "--compromised"], "invalid_overlap_hours"],
  [["client", "redirect-uris", "org_none", "https://a.example/cb"], "not_found"],
  [["client", "redirect-uris", free, "https://a.example/cb"], "no_client"],
  [[...uris, "http://a.example/cb"], "invalid_redirect_uris"],
  [[...uris, "https://a.example/cb", "javascript:alert(1)"], "invalid_redirect_uris"],
  [[...uris, "https://a.example/cb#f"], "invalid_redirect_uris"],
  [[...uris, "/callback"], "invalid_redirect_uris"],
  [["user", "create", "grace"], "invalid_org", "a long enough password"],
  [["user", "create", "grace", "--org", "org_none"], "not_found", "a long enough password"],
  [create("grace", "--role", "king"), "invalid_role", "a long enough password"],
  [create("taken"), "username_taken", "a long enough password"],
  [create("TAKEN"), "username_taken", "a long enough password"],
  [create("ｔａｋｅｎ"), "username_taken", "a long enough password"],
  [create("ab"), "invalid_username", "a long enough password"],
  [create("x".repeat(65)), "invalid_username", "a long enough password"],
  [create("two words"), "invalid_username", "a long enough password"],
  [create(" grace"), "invalid_username", "a long enough password"],
  [create("gra\u200bce"), "invalid_username", "a long enough password"],
  [create("grace."), "invalid_username", "a long enough password"],
  [create("grace"), "invalid_password", ""],
  [create("grace"), "invalid_password", "seven77\n"],
  [create("grace"), "invalid_password", "x".repeat(129)],
  [create("grace"), "invalid_password", "password123\n"],
  [create("grace"), "invalid_password", "PASSWORD123\n"],
  [create("gracehopper"), "invalid_password", "GraceHopper\n"],
  [create("grace"), "invalid_password", "linkgate\n"],
  [["user", "reset-password", "unknown"], "not_found"],
];

/** Returns a short title that is the same in every run. */
function typed(word: string): string {
  if (word === paid) return "<paid>";
  if (word === free) return "<free>";
  if (word.length > 40) return `<${word.length} characters>`;
  return /^[\w-]+$/.test(word) ? word : JSON.stringify(word);
}

for (const [words, code, input] of REFUSALS) {
  const stdin = input === undefined ? "" : `, ${typed(input)} on stdin,`;
  test(`linkgate ${words.map(typed).join(" ")}${stdin} fails with ${code}`, async (t) => {
    const { code: exit, stdout, stderr } = await runCommand([...words, "--json"], { settings }, input);
    t.is(stdout, "");
    t.is(exit, 1);
    const answer = JSON.parse(stderr);
    t.deepEqual(Object.keys(answer), ["error"]);
    t.deepEqual(Object.keys(answer.error), ["code", "message"]);
    t.is(answer.error.code, code);
    t.true(answer.error.message.length > 10);
    if (input) t.false(stderr.includes(input.trim()), "the password is printed");
  });
}

test("invalid settings are reported by the command, all together", async (t) => {
  const wrong = { settings: { PORT: "abc", LOG_LEVEL: "loud" } };
  const { code, stdout, stderr } = await runCommand(["org", "list", "--json"], wrong);
  t.is(code, 1);
  t.is(stdout, "");
  const { error } = JSON.parse(stderr);
  t.is(error.code, "wrong_settings");
  t.regex(error.message, /PORT .*\n.*LOG_LEVEL /);
});
