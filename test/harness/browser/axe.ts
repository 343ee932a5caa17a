import axe from "axe-core";
import type { Page } from "playwright-core";

type Results = {
  violations: { id: string; help: string; nodes: { html: string; failureSummary?: string }[] }[];
};

/** The rules whose answer depends on colours. */
export const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** What axe-core finds wrong with the page as it is shown, by some rules or by all. */
export async function violationsOf(page: Page, rules?: string[]): Promise<string[]> {
  // Evaluated, not added: the policy of our pages lets no script of others in.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(axe.source);
  const { violations } = await page.evaluate<Results>(`axe.run(${JSON.stringify({ runOnly: rules })})`);
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, failureSummary = "" }) => `${id}: ${help}\n  ${html}\n  ${failureSummary}`),
  );
}
