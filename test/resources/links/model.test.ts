import test from "ava";
import fc from "fast-check";
import { linkCommands, newModel, newWorld } from "../../harness/link-commands.ts";
import { startTestService } from "../../harness/service.ts";
import { atOnce } from "../../harness/storage.ts";

const ROUNDS = 25;
// One waits for the disk while another one thinks.
const AT_ONCE = 4;
const SEQUENCES = 5;
const LONGEST = 30;
// To try again what failed: the seed that the failure names.
const seed = process.env.TEST_SEED ? { seed: Number(process.env.TEST_SEED) } : {};

const service = await startTestService();
test.after.always(() => service.close());

const agrees = fc.asyncProperty(
  fc.commands(linkCommands, { maxCommands: LONGEST, size: "max" }),
  async (commands) => {
    const token = await service.token(await service.createOrganization());
    const world = newWorld(service.url, token);
    await fc.asyncModelRun(() => ({ model: newModel(), real: world }), commands);
  },
);

for (let round = 1; round <= ROUNDS; round++)
  test.serial(`${AT_ONCE * SEQUENCES} random sequences of calls agree with a model (${round})`, async (t) => {
    // A failure is thrown with its seed, and the shortest sequence that shows it.
    await atOnce(AT_ONCE, () =>
      fc.assert(agrees, { numRuns: SEQUENCES, includeErrorInReport: true, ...seed }),
    );
    t.pass();
  });
