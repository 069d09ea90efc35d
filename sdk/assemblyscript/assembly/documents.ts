import { fail } from "./abi";

export enum Kind {
  Null,
  Bool,
  Number,
  String,
  Array,
  Object,
}

/**
 * A value of a document. Members and items that are not there are null values,
 * so that a plugin can walk a document without checking each step.
 */
export class Json {
  kind: Kind = Kind.Null;
  /** Of a string; of a number or bool as written. */
  text: string = "";
  /** Of an array, or the values of an object. */
  items: Json[] = [];
  /** Of an object's members, beside items. */
  names: string[] = [];

  /** Reads a document; null with fail's message is an error. */
  static parse(text: string): Json | null {
    const p = new Parser(text);
    const v = p.value(0);
    p.space();
    if (!p.failed && p.i != text.length) p.fail("text follows the document");
    return p.failed ? null : v;
  }

  /** The number of items or members. */
  get length(): i32 {
    return this.items.length;
  }

  /** A member of an object, the last of that name. */
  get(name: string): Json {
    for (let i = this.names.length - 1; i >= 0; i--) {
      if (this.names[i] == name) return this.items[i];
    }
    return missing;
  }

  /** Item i of an array, or the value of member i. */
  at(i: i32): Json {
    return i >= 0 && i < this.items.length ? this.items[i] : missing;
  }

  /** Whether the value is true. */
  isTrue(): bool {
    return this.kind == Kind.Bool && this.text == "true";
  }

  /** An integer with all its 64 bits, written as 2, 2.0, 2e3 or "2"; otherwise is for everything else. */
  int(otherwise: i64): i64 {
    if (this.kind != Kind.Number && this.kind != Kind.String) return otherwise;
    const t = this.text;
    const negative = t.startsWith("-");
    let whole = t.length > i32(negative);
    let u: u64 = 0;
    for (let i = i32(negative); i < t.length && whole; i++) {
      const d = <u64>t.charCodeAt(i) - 48;
      whole = d <= 9 && u <= (u64.MAX_VALUE - d) / 10;
      u = u * 10 + d;
    }
    const edge: u64 = 1 << 63;
    if (whole && negative && u <= edge) return -(<i64>u);
    if (whole && !negative && u < edge) return <i64>u;
    if (this.kind != Kind.Number) return otherwise;
    const f = this.float(0.5);
    if (!(f > -9e18 && f < 9e18) || <f64>(<i64>f) != f) return otherwise;
    return <i64>f;
  }

  /**
   * A number, or a string that is one; otherwise is for everything else. It
   * rounds correctly to 15 digits, as all SDKs do.
   */
  float(otherwise: f64): f64 {
    if (this.kind != Kind.Number && this.kind != Kind.String) return otherwise;
    const t = this.text;
    const end = t.length;
    let i = 0;
    const negative = t.startsWith("-");
    if (negative) i++;
    let digits: u64 = 0;
    let scale: i32 = 0;
    let any = false;
    let dot = false;
    for (; i < end; i++) {
      const c = t.charCodeAt(i);
      if (c == 46 && !dot) {
        dot = true;
        continue;
      }
      if (c < 48 || c > 57) break;
      any = true;
      if (digits < 100000000000000000) {
        digits = digits * 10 + <u64>(c - 48);
        scale -= i32(dot);
      } else {
        scale += i32(!dot);
      }
    }
    if (!any) return otherwise;
    if (i < end && (t.charCodeAt(i) | 32) == 101) {
      const down = ++i < end && t.charCodeAt(i) == 45;
      if (i < end && (t.charCodeAt(i) == 45 || t.charCodeAt(i) == 43)) i++;
      if (i == end) return otherwise;
      let e: i32 = 0;
      for (; i < end && t.charCodeAt(i) >= 48 && t.charCodeAt(i) <= 57; i++) {
        if (e < 10000) e = e * 10 + (t.charCodeAt(i) - 48);
      }
      scale += down ? -e : e;
    }
    if (i != end) return otherwise;
    // Powers of ten up to 22 are exact, so that one rounding remains.
    let f = <f64>digits;
    while (scale != 0 && f != 0 && f < 8.98846567431158e307) {
      const step: i32 = scale > 22 ? 22 : scale < -22 ? -22 : scale;
      let power: f64 = 1;
      for (let k: i32 = step < 0 ? -step : step; k > 0; k--) power *= 10;
      f = step < 0 ? f / power : f * power;
      scale -= step;
    }
    return negative ? -f : f;
  }
}

/** What is not there. */
export const missing = new Json();

/** A JSON string with its quotes. */
export function quote(s: string): string {
  let out = '"';
  for (let i = 0; i < s.length; i++) {
    const c = s.charCodeAt(i);
    if (c < 32) out += "\\u" + c.toString(16).padStart(4, "0");
    else if (c == 34 || c == 92) out += "\\" + s.charAt(i);
    else out += s.charAt(i);
  }
  return out + '"';
}

class Parser {
  i: i32 = 0;
  failed: bool = false;

  constructor(private s: string) {}

  fail(what: string): Json {
    if (!this.failed) fail("JSON: " + what);
    this.failed = true;
    return missing;
  }

  peek(): i32 {
    return this.i < this.s.length ? this.s.charCodeAt(this.i) : -1;
  }

  space(): void {
    for (let c = this.peek(); c == 32 || c == 10 || c == 9 || c == 13; c = this.peek()) this.i++;
  }

  word(w: string): bool {
    if (!this.s.startsWith(w, this.i)) return false;
    this.i += w.length;
    return true;
  }

  digits(): bool {
    const from = this.i;
    while (this.peek() >= 48 && this.peek() <= 57) this.i++;
    return this.i > from;
  }

  number(): bool {
    if (this.peek() == 45) this.i++;
    if (!this.digits()) return false;
    if (this.peek() == 46) {
      this.i++;
      if (!this.digits()) return false;
    }
    if ((this.peek() | 32) == 101) {
      this.i++;
      if (this.peek() == 43 || this.peek() == 45) this.i++;
      if (!this.digits()) return false;
    }
    return true;
  }

  string(): string {
    let out = "";
    let from = ++this.i;
    for (let c = this.peek(); c != -1; c = this.peek()) {
      if (c == 34) {
        out += this.s.substring(from, this.i++);
        return out;
      }
      if (c < 32) break;
      this.i++;
      if (c != 92) continue;
      out += this.s.substring(from, this.i - 1);
      const e = this.peek();
      this.i++;
      if (e == 34 || e == 92 || e == 47) out += String.fromCharCode(e);
      else if (e == 98) out += "\b";
      else if (e == 102) out += "\f";
      else if (e == 110) out += "\n";
      else if (e == 114) out += "\r";
      else if (e == 116) out += "\t";
      else if (e == 117 && this.i + 4 <= this.s.length) {
        let v = 0;
        for (let k = 0; k < 4; k++) {
          const h = this.s.charCodeAt(this.i++) | 32;
          const d = h >= 48 && h <= 57 ? h - 48 : h >= 97 && h <= 102 ? h - 87 : -1;
          if (d < 0) {
            this.fail("a bad \\u escape");
            return "";
          }
          v = v * 16 + d;
        }
        out += String.fromCharCode(v);
      } else break;
      from = this.i;
    }
    this.fail("a malformed string");
    return "";
  }

  value(depth: i32): Json {
    this.space();
    if (depth > 64) return this.fail("it is nested too deeply");
    const c = this.peek();
    if (c == -1) return this.fail("it is cut off");
    const v = new Json();
    const from = this.i;
    if (c == 123 || c == 91) {
      const end = c == 123 ? 125 : 93;
      v.kind = c == 123 ? Kind.Object : Kind.Array;
      this.i++;
      this.space();
      if (this.peek() == end) {
        this.i++;
        return v;
      }
      for (;;) {
        if (c == 123) {
          this.space();
          if (this.peek() != 34) return this.fail("a member without a name");
          v.names.push(this.string());
          this.space();
          if (this.peek() != 58) return this.fail("a member without a value");
          this.i++;
        }
        v.items.push(this.value(depth + 1));
        if (this.failed) return missing;
        this.space();
        const next = this.peek();
        this.i++;
        if (next == end) return v;
        if (next != 44) return this.fail("a comma is missing");
      }
    }
    if (c == 34) {
      v.kind = Kind.String;
      v.text = this.string();
      return v;
    }
    if (this.word("null")) return v;
    if (this.word("true") || this.word("false")) v.kind = Kind.Bool;
    else if (c == 45 || (c >= 48 && c <= 57)) {
      v.kind = Kind.Number;
      if (!this.number()) return this.fail("a malformed number");
    } else return this.fail("an unexpected character");
    v.text = this.s.substring(from, this.i);
    return v;
  }
}

/** An existing table, under its logical name. */
export class Table {
  name: string;
  physicalName: string;
  rows: i64;
  /** Whether keyMin and keyMax are set: the key is one integer column and the table is not empty. */
  hasRange: bool;
  keyMin: i64;
  keyMax: i64;
  /** Every integer from keyMin to keyMax is a key. */
  dense: bool;
  /** Every integer from keyMin to denseMax is a key; below keyMin when unknown. */
  denseMax: i64;
  /** The names of the key's columns. */
  key: Json;
  /** Of {name, type, db_type, nullable, has_default, generated, unique, max_length}. */
  columns: Json;

  constructor(v: Json) {
    this.name = v.get("name").text;
    this.physicalName = v.get("physical_name").text;
    this.rows = v.get("rows").int(0);
    this.hasRange = v.get("key_min").kind == Kind.Number && v.get("key_max").kind == Kind.Number;
    const keyMin = v.get("key_min").int(0);
    this.keyMin = keyMin;
    this.keyMax = v.get("key_max").int(0);
    this.dense = v.get("dense").isTrue();
    this.denseMax = v.get("dense_max").int(keyMin - 1);
    this.key = v.get("key");
    this.columns = v.get("columns");
  }
}

/** The document of open. */
export class Request {
  seed: i64;
  /**
   * No two streams of a run have the same keySlot, and all have the same keySlots:
   * keyMax + 1 + keySlot + n·keySlots are new keys that never collide.
   */
  keySlot: i64;
  keySlots: i64;
  /** The parameters of the template, with the defaults of the plugin's schema. */
  params: Json;
  tables: Table[] = [];
  /** Of {table, columns, rows}: sampled keys, where keys are not dense integers. */
  pools: Json;

  constructor(doc: Json) {
    this.seed = doc.get("seed").int(0);
    this.keySlot = doc.get("key_slot").int(0);
    this.keySlots = max<i64>(doc.get("key_slots").int(1), 1);
    this.params = doc.get("params");
    this.pools = doc.get("pools");
    const tables = doc.get("tables");
    for (let i = 0; i < tables.length; i++) this.tables.push(new Table(tables.at(i)));
  }

  /** The table of that logical name, or null. */
  table(name: string): Table | null {
    for (let i = 0; i < this.tables.length; i++) {
      if (this.tables[i].name == name) return this.tables[i];
    }
    return null;
  }
}
