// Writes what DuckDB reads of this folder's CSV files: see README.md.
//
//   node tests/csv/shapes/ask_duckdb.mjs > tests/csv/shapes/duckdb.txt
//
// Needs bench/duckdb_peer/node_modules, which `./run bench csv` installs; NAM_DUCKDB names another folder that has it.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const peer = process.env.NAM_DUCKDB ?? path.join(here, '../../../bench/duckdb_peer');
const { DuckDBInstance, version } = createRequire(path.join(peer, 'package.json'))('@duckdb/node-api');

const types = {
  BIGINT: 'bigint', DOUBLE: 'double', VARCHAR: 'text', BOOLEAN: 'boolean', DATE: 'date', TIME: 'time',
  TIMESTAMP: 'timestamp', 'TIMESTAMP WITH TIME ZONE': 'timestamptz',
};
const shown = (text, type) => {
  if (text === null) return 'NULL';
  return JSON.stringify(type === 'double' ? text.replace(/\.0$/, '') : text);
};

const connection = await (await DuckDBInstance.create(':memory:')).connect();
await connection.run("SET threads = 1; SET TimeZone = 'UTC'");
console.log(`# DuckDB ${version()}`);
for (const file of fs.readdirSync(here).filter((name) => name.endsWith('.csv')).sort()) {
  console.log(`== ${file}`);
  try {
    const source = `'${path.join(here, file)}'`;
    const described = (await connection.runAndReadAll(`DESCRIBE SELECT * FROM ${source}`)).getRowsJson();
    const reader = await connection.runAndReadAll(
      `SELECT COLUMNS(*)::VARCHAR FROM ${source} LIMIT 3`);
    const names = described.map((column) => types[column[1]] ?? column[1]);
    console.log(described.map((column, i) => `${column[0]} ${names[i]}`).join(', ').replaceAll('\n', '\\n'));
    for (const row of reader.getRowsJson()) console.log(row.map((text, i) => shown(text, names[i])).join(' '));
  } catch (error) {
    console.log('error');
  }
}
