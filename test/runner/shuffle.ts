import { createHash } from "node:crypto";

/** Returns the values in an order that follows from the seed. */
export function shuffled(values: string[], seed: string): string[] {
  const keyOf = (value: string) => createHash("sha256").update(`${seed} ${value}`).digest("hex");
  return values.toSorted((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1));
}
