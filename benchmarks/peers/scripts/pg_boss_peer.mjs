// pg-boss, fetching and completing by batches of a thousand. A worker of it fetches once in half a second at most, so
// there are ten.
import * as module from "pg-boss";
import { run, tell, url } from "./shared.mjs";

const PgBoss = module.PgBoss ?? module.default;
let boss;

async function start() {
  boss = new PgBoss(url);
  boss.on("error", console.error);
  await boss.start();
}

await run({
  async setup() {
    await start();
    await boss.createQueue("noop");
    await boss.createQueue("tell");
  },
  open: start,
  one: (n) => boss.send("noop", { n }),
  // Up to version 10 the queue is named in each job.
  many: (chunk) =>
    Number.parseInt(process.env.PEER_VERSION) > 10
      ? boss.insert("noop", chunk.map((n) => ({ data: { n } })))
      : boss.insert(chunk.map((n) => ({ name: "noop", data: { n } }))),
  tell: (address) => boss.send("tell", { address }),
  async worker() {
    await start();
    for (let n = 0; n < 10; n++) {
      await boss.work("noop", { batchSize: 1000, pollingIntervalSeconds: 0.5 }, async () => {});
    }
    await boss.work("tell", { pollingIntervalSeconds: 0.5 }, async ([job]) => tell(job.data.address));
  },
});
