import { readSettings, WrongSettings } from "./config.ts";
import { describeDemo } from "./demo.ts";
import { createLog } from "./log.ts";
import { startService } from "./service.ts";

async function main(): Promise<void> {
  const settings = readSettings();
  const service = await startService(settings, createLog(settings.LOG_LEVEL));
  if (service.demo) console.log(describeDemo(service.demo, service.addresses));
  console.log(`linkgate listening on ${service.addresses.base}`);

  let stopping = false;
  async function stop() {
    if (stopping) return;
    stopping = true;
    await service.close();
    process.exit(0);
  }
  process.on("SIGTERM", stop);
  process.on("SIGINT", stop);
}

main().catch((error: Error) => {
  const isOurs = error instanceof WrongSettings || error.name === "WrongEncryptionKey";
  console.error(isOurs ? error.message : error);
  process.exit(1);
});
