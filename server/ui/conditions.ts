import type { Rule } from "../../resources/links/redirect-rules.ts";
import { capitalized } from "./text.ts";

export type Condition = keyof Rule["if"];

/** What a form calls the conditions of a rule, in its order. */
export const CONDITIONS: Record<Condition, string> = {
  device: "Device",
  os: "System",
  language: "Language",
  country: "Country",
  after: "From (UTC)",
  before: "Until (UTC)",
  query: "Parameters",
};
export const CONDITION_NAMES = Object.keys(CONDITIONS) as Condition[];

export function isTime(name: string): boolean {
  return name === "after" || name === "before";
}

/** Describes the conditions of a rule, such as “Device mobile, language de”. */
export function describeConditions(conditions: Rule["if"]): string {
  const parts = CONDITION_NAMES.flatMap((name) => {
    const value = conditions[name];
    if (value === undefined) return [];
    const label = CONDITIONS[name].replace(" (UTC)", "").toLowerCase();
    return [`${label} ${isTime(name) ? `${value.slice(0, 16).replace("T", " ")} UTC` : value}`];
  });
  return capitalized(parts.join(", "));
}
