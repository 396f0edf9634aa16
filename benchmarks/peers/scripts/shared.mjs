// What the scripts of peers for Node have in common: the same command line as shared.py.
import { execFileSync } from "node:child_process";

export const url = process.env.DATABASE_URL;
const CHUNK = 1000;

export function chunks(count) {
  const found = [];
  for (let first = 0; first < count; first += CHUNK) {
    found.push(Array.from({ length: Math.min(CHUNK, count - first) }, (_, n) => first + n));
  }
  return found;
}

const now = () => performance.timeOrigin + performance.now();
const pause = (seconds) => new Promise((resolve) => setTimeout(resolve, 1000 * seconds));

// A job that tells writes its time to a file, since Node has no datagram sockets of this host.
export async function tell(address) {
  const { appendFile } = await import("node:fs/promises");
  await appendFile(address, `${now()}\n`);
}

export async function run(peer) {
  const [command, ...rest] = process.argv.slice(2);
  const [count, seconds] = rest.map(Number);
  if (command === "worker") return peer.worker();
  if (command === "setup") {
    await peer.setup();
    process.exit(0);
  }
  await peer.open();
  let found;
  const began = performance.now();
  if (command === "one") {
    for (let n = 0; n < count; n++) await peer.one(n);
    found = (performance.now() - began) / 1000;
  } else if (command === "many") {
    for (const chunk of chunks(count)) await peer.many(chunk);
    found = (performance.now() - began) / 1000;
  } else {
    found = await latencies(peer, count, seconds);
  }
  console.log(JSON.stringify(found));
  process.exit(0);
}

async function latencies(peer, count, seconds) {
  const { mkdtempSync, readFileSync, writeFileSync, existsSync } = await import("node:fs");
  const { tmpdir } = await import("node:os");
  const folder = mkdtempSync(`${tmpdir()}/starts-`);
  const waits = [];
  for (let n = 0; n < count; n++) {
    await pause((0.2 + 1.6 * Math.random()) * seconds);
    const address = `${folder}/${n}`;
    const called = now();
    await peer.tell(address);
    while (!existsSync(address) || !readFileSync(address, "utf8").endsWith("\n")) await pause(0.001);
    waits.push(Number(readFileSync(address, "utf8")) - called);
  }
  execFileSync("rm", ["-r", folder]);
  return waits;
}
