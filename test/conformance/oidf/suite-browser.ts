import type { HTMLElement } from "node-html-parser";
import { type Page, TestBrowser } from "../../harness/clients/test-browser.ts";

type Command = [name: string, kind: string, target: string, ...rest: (string | number)[]];
type Task = { task: string; match: string; optional?: boolean; commands?: Command[] };
/** An entry of `browser` in a configuration of the suite. */
export type Script = { match: string; "match-limit"?: number; tasks: Task[] };

/** Carries out the scripts of a configuration like the browser of the suite, in which the pages of a module share cookies. */
export class SuiteBrowser {
  /** The selectors that have matched an element. */
  readonly matched = new Set<string>();
  readonly #browser: TestBrowser;
  readonly #scripts: Script[];

  constructor(issuer: string, scripts: Script[]) {
    this.#browser = new TestBrowser(issuer);
    this.#scripts = structuredClone(scripts);
  }

  /** Visits a URL with the first script for it, and returns the last page. Throws an Error where the suite fails. */
  async visit(url: string): Promise<Page> {
    const script = this.#scripts.find((one) => isMatch(one.match, url) && one["match-limit"] !== 0);
    if (!script) throw new Error(`no script matches ${url}`);
    if (script["match-limit"]) script["match-limit"]--;
    let page = await this.#browser.open(url);
    for (const task of script.tasks) {
      if (isMatch(task.match, page.url)) page = await this.#perform(task, page);
      else if (!task.optional)
        throw new Error(`${task.task}: ${page.url} doesn't match ${task.match}:\n${page.text}`);
    }
    return page;
  }

  async #perform({ task, commands = [] }: Task, opened: Page): Promise<Page> {
    let page = opened;
    const fields: Record<string, string> = {};
    for (const command of commands) {
      const [name, kind, target, ...rest] = command;
      // The suite's own page, which isn't here.
      if (target === "submission_complete") continue;
      const element = find(page, kind, target);
      if (element) this.matched.add(`${kind} ${target}`);
      else if (rest.includes("optional")) continue;
      else throw new Error(`${task}: no element has the ${kind} ${target}:\n${page.text}`);
      if (name === "text") fields[nameOf(element)] = String(rest[0]);
      else if (name === "click") page = await this.#browser.click(page, element, fields);
      else if (!new RegExp(String(rest[1])).test(element.text))
        throw new Error(`${task}: the page doesn't contain ${rest[1]}:\n${page.text}`);
    }
    return page;
  }
}

function nameOf({ attributes }: HTMLElement): string {
  if (!attributes.name) throw new Error("the field has no name");
  return attributes.name;
}

function find({ html }: Page, kind: string, target: string): HTMLElement | null {
  if (kind === "id") return html.querySelector(`#${target}`);
  if (kind === "css") return html.querySelector(target);
  if (kind === "xpath" && target === "//*") return html;
  throw new Error(`unknown selector ${kind} ${target}`);
}

/** The suite's patterns have `*` for any characters. */
function isMatch(pattern: string, url: string): boolean {
  return new RegExp(`^${pattern.replaceAll(/[.+?^${}()|[\]\\]/g, "\\$&").replaceAll("*", ".*")}$`).test(url);
}
