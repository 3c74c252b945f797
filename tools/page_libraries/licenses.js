// Print the licences of the packages whose folders the input names, one a line. Packages under the same words share them: above the words
// stand their names, each with its own lines of copyright. Packages of types alone are left out: nothing of them is in the bundle.
const fs = require("node:fs");
const path = require("node:path");

const COPYRIGHT = /^\s*Copyright\b.*\d{4}|^\s*Copyright \(c\)/i;
const TITLE = /^\(?(The )?MIT License( \(MIT\))?\)?$/i;

const isFile = (name) => /^licen[sc]e/i.test(name);
const hasCode = (folder) => fs.readdirSync(folder, { recursive: true }).some((name) => /\.[cm]?js$/.test(name));
const wordsOf = (lines) => lines.join(" ").replace(/[’'"]/g, '"').replace(/\s+/g, " ").trim();

const groups = new Map();
for (const folder of fs.readFileSync(0, "utf8").split("\n").filter(Boolean).filter(hasCode)) {
  for (const file of fs.readdirSync(folder).filter(isFile).sort()) {
    const lines = fs.readFileSync(path.join(folder, file), "utf8").trim().split(/\r?\n/);
    const first = lines.findIndex((line) => line.trim() && !COPYRIGHT.test(line) && !TITLE.test(line.trim()));
    const holders = lines.slice(0, first).filter((line) => COPYRIGHT.test(line)).map((line) => line.trim());
    const text = lines.slice(first);
    const key = wordsOf(text);
    const group = groups.get(key) ?? { text, heads: new Set() };
    const name = folder.split("/node_modules/").at(-1);
    group.heads.add(holders.length ? `${name}: ${holders.join("; ")}` : name);
    groups.set(key, group);
  }
}
for (const { text, heads } of groups.values()) console.log(`${[...heads].join("\n")}\n\n${text.join("\n")}\n`);
