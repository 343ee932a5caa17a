/** Whether the run takes its time, as each night. */
export const IS_THOROUGH = process.env.TEST_ROUNDS === "many";

/**
 * Returns how often a test repeats what happens in another order each time: `few` in `npm test`, `many` in
 * `npm run test:races`. The assertions are the same.
 */
export const rounds = (few: number, many: number): number => (IS_THOROUGH ? many : few);

/** The seed of random requests. The runner chooses and prints one; `TEST_SEED` repeats a run. */
export const SEED = Number(process.env.TEST_SEED ?? 0);
