// What the page's wasm is made of: bytes of code by crate, and the largest functions.
// Reads the file between wasm-bindgen and wasm-opt, because the shipped one has no names any more.
// Run by hand: node .ci/wasm-size.mjs [FILE]
import { readFileSync } from "node:fs";
import { join } from "node:path";

const target = process.env.CARGO_TARGET_DIR ?? "target";
const file = process.argv[2] ?? join(target, "wasm-bindgen/release/oom-ledger-site_bg.wasm");
const bytes = readFileSync(file);
let at = 8;

function leb() {
  let value = 0;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[at++];
    value += (byte & 127) * 2 ** shift;
    if (byte < 128) return value;
  }
}
const text = () => {
  const length = leb();
  return bytes.toString("utf8", at, (at += length));
};

let imported = 0;
const sizes = []; // bytes by index of defined function
const names = new Map(); // name by index of function, imports first
const sections = [];
while (at < bytes.length) {
  const id = bytes[at++];
  const size = leb();
  const end = at + size;
  sections.push([id, size]);
  if (id === 2) {
    for (let left = leb(); left > 0; left--) {
      text();
      text();
      const kind = bytes[at++];
      if (kind === 0) (imported++, leb());
      else if (kind === 3) at += 2;
      else {
        if (kind === 1) at++;
        const flags = leb();
        leb();
        if (flags & 1) leb();
      }
    }
  } else if (id === 10) {
    for (let left = leb(); left > 0; left--) {
      const size = leb();
      sizes.push(size);
      at += size;
    }
  } else if (id === 0 && text() === "name") {
    while (at < end) {
      const sub = bytes[at++];
      const subEnd = leb() + at;
      if (sub === 1) for (let left = leb(); left > 0; left--) names.set(leb(), text());
      at = subEnd;
    }
  }
  at = end;
}

// The crate that a demangled name belongs to: the type or path it starts with, past references and generics.
const plain = (name) => name.replace(/\[[0-9a-f]{8,}\]/g, "");
const crate = (name) => /([a-z_][a-z0-9_]*)(?=::)/i.exec(plain(name).replace(/^<*(&|mut |dyn |\*const |\[)*/, ""))?.[1] ?? "other";
const byCrate = new Map();
const functions = sizes.map((size, i) => [names.get(i + imported) ?? `function ${i}`, size]);
for (const [name, size] of functions) byCrate.set(crate(name), (byCrate.get(crate(name)) ?? 0) + size);

const code = sizes.reduce((a, b) => a + b, 0);
const data = sections.filter(([id]) => id === 11).reduce((a, [, size]) => a + size, 0);
console.log(`${file}: ${bytes.length} bytes, code ${code}, data ${data}`);
console.log("code by crate (before wasm-opt):");
for (const [name, size] of [...byCrate].sort((a, b) => b[1] - a[1]).slice(0, 15))
  console.log(`  ${((100 * size) / code).toFixed(1).padStart(5)} %  ${String(size).padStart(8)}  ${name}`);
console.log("largest functions:");
for (const [name, size] of functions.sort((a, b) => b[1] - a[1]).slice(0, 15))
  console.log(`  ${String(size).padStart(8)}  ${plain(name).slice(0, 110)}`);
