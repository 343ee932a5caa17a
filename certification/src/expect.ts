/** The server does not do what the clause requires. */
export class Violation extends Error {
  override readonly name = "Violation";
}

/** The server doesn't offer what the check is about. */
export class NotApplicable extends Error {
  override readonly name = "NotApplicable";
}

/** Throws Violation unless the condition holds. */
export function expect(condition: unknown, problem: string): asserts condition {
  if (!condition) throw new Violation(problem);
}

/** Throws NotApplicable unless the server or the configuration has what a check needs. */
export function needs<T>(value: T | undefined | null | false, reason: string): T {
  if (value === undefined || value === null || value === false) throw new NotApplicable(reason);
  return value;
}
