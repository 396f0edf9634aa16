// graphile-worker with what its page on performance says for many small jobs: a local queue, completions in batches.
import { Logger, makeWorkerUtils, run as runWorker } from "graphile-worker";
import { run, tell, url } from "./shared.mjs";

let utils;

await run({
  async setup() {
    utils = await makeWorkerUtils({ connectionString: url });
    await utils.migrate();
  },
  async open() {
    utils = await makeWorkerUtils({ connectionString: url });
  },
  one: (n) => utils.addJob("noop", { n }),
  many: (chunk) => utils.addJobs(chunk.map((n) => ({ identifier: "noop", payload: { n } }))),
  tell: (address) => utils.addJob("tell", { address }),
  async worker() {
    const runner = await runWorker({
      logger: new Logger(() => () => {}), // a line for each job, without it
      preset: {
        worker: {
          connectionString: url,
          concurrentJobs: 24,
          maxPoolSize: 25,
          localQueue: { size: 500 },
          completeJobBatchDelay: 0,
          failJobBatchDelay: 0,
        },
      },
      taskList: { noop: async () => {}, tell: ({ address }) => tell(address) },
    });
    await runner.promise;
  },
});
