import axe from "axe-core";
import type { Page } from "playwright-core";

type Results = {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
};

/** The rules that depend on colors. */
export const COLOR_RULES = ["color-contrast", "link-in-text-block"];

/** Returns the violations that axe-core finds on the page, by all rules or the given ones. */
export async function violationsOf(page: Page, rules?: string[]): Promise<string[]> {
  // Evaluated, because the pages' content security policy blocks added scripts.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate<Results>(`axe.run(${JSON.stringify({ runOnly: rules })})`);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = "" }) => `${id}: ${help}\n  ${html}\n  ${failureSummary}`),
  );
}
