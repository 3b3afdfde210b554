// The last step of a page build (trunk's post_build hook; run by hand: node .ci/finish-page.mjs DIR).
//
// 1. Moves trunk's inline start script into a file of its own: the page's Content-Security-Policy allows no
//    inline script, and a hash or nonce in the policy would have to change with every build.
// 2. Refuses a page that would break that policy: inline script, style or handler, or an address elsewhere.
// 3. In a release build writes .br and .gz beside every text and wasm file, and states the sizes.
import { createHash } from "node:crypto";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";

const dir = process.env.TRUNK_STAGING_DIR ?? process.argv[2];
const release = process.env.TRUNK_PROFILE !== "debug";
if (!dir) throw new Error("give the directory of the page");

const page = join(dir, "index.html");
let html = readFileSync(page, "utf8");

html = html.replace(/<script type="?module"?[^>]*>([^]*?)<\/script>/g, (whole, body) => {
  if (!body.trim()) return whole;
  const hash = createHash("sha384").update(body).digest();
  const name = `start-${hash.toString("hex").slice(0, 16)}.js`;
  writeFileSync(join(dir, name), body);
  const integrity = `sha384-${hash.toString("base64")}`;
  return `<script type="module" src="./${name}" integrity="${integrity}"></script>`;
});
// Chromium warns on its console of an integrity value on a preload that it cannot check.
html = html.replace(/<link[^>]*\sas="?fetch"?[^>]*>/g, (link) => link.replace(/\sintegrity=("[^"]*"|[^\s>]+)/, ""));
writeFileSync(page, html);

const offences = [
  [/<script(?![^>]*\ssrc=)[^>]*>/i, "an inline script"],
  [/<style[\s>]/i, "an inline style sheet"],
  [/<[^>]+\sstyle=/i, "a style attribute"],
  [/<[^>]+\son[a-z]+=/i, "an inline event handler"],
  [/<(script|link|img)[^>]+(src|href)=["']?(https?:)?\/\//i, "an address on another host"],
];
for (const [pattern, what] of offences) {
  const found = html.match(pattern);
  if (found) throw new Error(`${page} holds ${what}, which its policy forbids: ${found[0].slice(0, 120)}`);
}
if (!/<meta[^>]*Content-Security-Policy/i.test(html)) throw new Error(`${page} has no Content-Security-Policy`);

const TEXT = new Set([".css", ".html", ".js", ".json", ".svg", ".txt", ".wasm", ".webmanifest"]);
const rows = [];
for (const entry of readdirSync(dir, { recursive: true })) {
  const path = join(dir, entry);
  if (!statSync(path).isFile() || !TEXT.has(extname(path)) || !release) continue;
  const raw = readFileSync(path);
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: raw.length };
  const brotli = brotliCompressSync(raw, { params: quality });
  const gzip = gzipSync(raw, { level: 9 });
  writeFileSync(`${path}.br`, brotli);
  writeFileSync(`${path}.gz`, gzip);
  rows.push([entry, raw.length, gzip.length, brotli.length]);
}
rows.sort((a, b) => b[1] - a[1]);
const line = (cells) => cells[0].padEnd(48) + cells.slice(1).map((c) => String(c).padStart(11)).join("");
const total = (i) => rows.reduce((sum, row) => sum + row[i], 0);
if (rows.length) {
  console.log(line(["bytes of", "raw", "gzip", "brotli"]));
  for (const row of rows.slice(0, 12)) console.log(line(row));
  console.log(line([`all ${rows.length} files`, total(1), total(2), total(3)]));
}
