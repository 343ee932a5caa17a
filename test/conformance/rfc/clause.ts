/** A test by its file, without `test/` and `.test.ts`, and its title as the source has it. */
export type Reference = `${string}: ${string}`;

/** What an RFC requires (MUST, MUST NOT, REQUIRED, SHALL) of the parts that linkgate plays, in our words. */
export type Clause = {
  /** Such as `3.1.2.3`. */
  section: string;
  rule: string;
} & (
  | { tests: [Reference, ...Reference[]] }
  /** Why no test can show it from outside, or why it does not apply. */
  | { why: string }
  /** What linkgate does instead, and why. */
  | { deviation: string }
);

export type Standard = { rfc: number; name: string; clauses: Clause[] };
