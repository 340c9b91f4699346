// DuckDB as the peer of a benchmark. One JSON object per line on stdin is a request, one per
// line on stdout its answer, in order: {"ok": true, …} or {"ok": false, "error": "…"}.
//
//   {"op": "open", "threads": 2, "memory_bytes": 0, "file": ""}
//                                                     → version; 0 bytes: DuckDB's own limit; no file: in memory
//   {"op": "load", "directory": "…", "tables": [{"name": "date", "file": "date.tbl", "rows": 2556,
//      "columns": [{"name": "d_datekey", "type": "INTEGER"}, …]}, …]}
//                                                     → seconds; files in dbgen's format (`a|b|c|`)
//   {"op": "append", "directory": "…", "table": "r", "rows": 1000,
//      "columns": [{"name": "k", "file": "r.k"}, …]}  → seconds; integers of 4 bytes, a file for each column
//   {"op": "query", "sql": "…"}                       → elapsed_ms, rows as text
//
// A query's time is from the text of the statement to its last row, all of them fetched; making text of
// the rows is not in it. The process ends when stdin does.
import fs from 'node:fs';
import readline from 'node:readline';
import path from 'node:path';
import { DuckDBDataChunk, DuckDBInstance, INTEGER, version } from '@duckdb/node-api';

let connection = null;

const name = (identifier) => `"${identifier.replaceAll('"', '""')}"`;
const text = (string) => `'${string.replaceAll("'", "''")}'`;

async function open({ threads, memory_bytes: memoryBytes = 0, file = '' }) {
  const instance = await DuckDBInstance.create(file || ':memory:');
  connection = await instance.connect();
  await connection.run(`SET threads = ${Number(threads)}`);
  if (memoryBytes > 0) await connection.run(`SET memory_limit = '${Number(memoryBytes)}B'`);
  return { version: version() };
}

async function loadTable(directory, table) {
  const columns = table.columns.map((column) => `${name(column.name)} ${column.type} NOT NULL`);
  await connection.run(`CREATE TABLE ${name(table.name)} (${columns.join(', ')})`);
  // The separator that closes every line makes one more column.
  const fields = table.columns.map((column) => `${text(column.name)}: ${text(column.type)}`);
  const file = path.join(directory, table.file);
  await connection.run(
    `INSERT INTO ${name(table.name)} SELECT ${table.columns.map((column) => name(column.name)).join(', ')}` +
      ` FROM read_csv(${text(file)}, delim = '|', header = false, quote = '', escape = '',` +
      ` auto_detect = false, columns = {${[...fields, "'closing': 'VARCHAR'"].join(', ')}})`,
  );
  const reader = await connection.runAndReadAll(`SELECT count(*) FROM ${name(table.name)}`);
  const rows = Number(reader.getRows()[0][0]);
  if (rows !== table.rows) throw new Error(`${table.name}: ${rows} rows arrived, not ${table.rows}`);
}

async function load({ directory, tables }) {
  const start = process.hrtime.bigint();
  for (const table of tables) await loadTable(directory, table);
  return { seconds: Number(process.hrtime.bigint() - start) / 1e9 };
}

const chunkRows = 2048; // DuckDB's vector size
const chunksOfRead = 512;

// Appends columns of integers a chunk at a time: their bytes go into DuckDB's vectors as they are.
async function append({ directory, table, rows, columns }) {
  const start = process.hrtime.bigint();
  const declared = columns.map((column) => `${name(column.name)} INTEGER NOT NULL`);
  await connection.run(`CREATE TABLE ${name(table)} (${declared.join(', ')})`);
  const files = columns.map((column) => fs.openSync(path.join(directory, column.file)));
  const buffers = columns.map(() => new Int32Array(chunkRows * chunksOfRead));
  const appender = await connection.createAppender(table);
  const types = columns.map(() => INTEGER);
  let chunk = DuckDBDataChunk.create(types, chunkRows);
  for (let row = 0; row < rows; ) {
    const read = Math.min(rows - row, buffers[0].length);
    files.forEach((file, i) => {
      const bytes = fs.readSync(file, buffers[i], 0, read * 4, row * 4);
      if (bytes !== read * 4) throw new Error(`${columns[i].file} has fewer than ${rows} rows`);
    });
    for (let at = 0; at < read; at += chunkRows) {
      const end = Math.min(at + chunkRows, read);
      if (end - at !== chunk.rowCount) chunk = DuckDBDataChunk.create(types, end - at);
      buffers.forEach((buffer, i) => {
        const vector = chunk.getColumnVector(i);
        vector.items.set(buffer.subarray(at, end));
        vector.flush();
      });
      appender.appendDataChunk(chunk);
    }
    row += read;
  }
  appender.closeSync();
  files.forEach((file) => fs.closeSync(file));
  return { seconds: Number(process.hrtime.bigint() - start) / 1e9 };
}

async function query({ sql }) {
  const start = process.hrtime.bigint();
  const reader = await connection.runAndReadAll(sql);
  const elapsed = process.hrtime.bigint() - start;
  const rows = reader.getRows().map((row) => row.map((value) => (value === null ? null : String(value))));
  return { elapsed_ms: Number(elapsed) / 1e6, rows };
}

const operations = { open, load, append, query };

// One write per answer: the reader waits for a whole line.
for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
  let answer;
  try {
    const request = JSON.parse(line);
    if (!Object.hasOwn(operations, request.op)) throw new Error(`there is no operation ${request.op}`);
    answer = { ok: true, ...(await operations[request.op](request)) };
  } catch (error) {
    answer = { ok: false, error: String(error?.message ?? error) };
  }
  process.stdout.write(JSON.stringify(answer) + '\n');
}
process.exit(0);
