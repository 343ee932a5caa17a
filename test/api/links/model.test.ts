import test from "ava";
import fc from "fast-check";
import { atOnce } from "../../harness/database/storage.ts";
import { createTarget, linkCommands } from "../../harness/model/link-commands.ts";
import { LinkModel } from "../../harness/model/link-model.ts";
import { rounds, SEED } from "../../harness/rounds.ts";
import { startTestService } from "../../harness/service.ts";

export const stage = "long";
export const databases = "all";

const ROUNDS = 25;
// One sequence waits for the disk while another one computes.
const CONCURRENCY = 4;
const SEQUENCES = rounds(1, 5);
const MAX_COMMANDS = 30;

const service = await startTestService();

const agreesWithModel = fc.asyncProperty(
  fc.commands(linkCommands, { maxCommands: MAX_COMMANDS, size: "max" }),
  async (commands) => {
    const token = await service.token(await service.createOrganization());
    const target = createTarget(service.url, token);
    await fc.asyncModelRun(() => ({ model: new LinkModel(), real: target }), commands);
  },
);

let seed = SEED;
for (let round = 1; round <= ROUNDS; round++)
  test.serial(`random sequences of requests agree with the model (${round})`, async (t) => {
    // A failure reports its seed and the shortest failing sequence.
    await atOnce(CONCURRENCY, () =>
      fc.assert(agreesWithModel, { numRuns: SEQUENCES, includeErrorInReport: true, seed: seed++ }),
    );
    t.pass();
  });
