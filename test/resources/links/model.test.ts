import test from "ava";
import fc from "fast-check";
import { engine } from "../../harness/database.ts";
import { linkCommands, newModel, newWorld } from "../../harness/link-commands.ts";
import { startTestService } from "../../harness/service.ts";

// On the other databases fewer: each of the thousands of calls waits there for a server, and for the call before.
const SEQUENCES = engine === "sqlite" ? 500 : 48;
// At the same time: one waits for the disk while another one thinks.
const SHARES = 4;
const LONGEST = 30;
// To try again what failed: the seed that the failure names.
const seed = process.env.TEST_SEED ? { seed: Number(process.env.TEST_SEED) } : {};

const service = await startTestService();
test.after.always(() => service.close());

for (let share = 1; share <= SHARES; share++) {
  const count = SEQUENCES / SHARES;
  test(`${count} random sequences of calls agree with a model in memory (${share})`, async (t) => {
    t.timeout(300_000);
    const sequence = fc.commands(linkCommands, { maxCommands: LONGEST, size: "max" });
    const agrees = fc.asyncProperty(sequence, async (commands) => {
      const token = await service.token(await service.createOrganization());
      const world = newWorld(service.url, token);
      await fc.asyncModelRun(() => ({ model: newModel(), real: world }), commands);
    });
    // A failure is thrown with its seed, and the shortest sequence that shows it.
    await fc.assert(agrees, { numRuns: count, includeErrorInReport: true, ...seed });
    t.pass();
  });
}
